/* SPDX-License-Identifier: Apache-2.0 */
/* what_if.c - reads alternatives. */
#include "cli/serve/what_if.h"

#include <string.h>

#include "cli/codes.h"

uint32_t cli_serve_what_ifs(const struct cli *cli)
{
    uint32_t n = 0;
    for (const char *at = cli->values[SERVE_WHAT_IF]; at && *at; at += strcspn(at, ";"), at += *at == ';')
        n++;
    return n;
}

/* Of who serves, and of what fails; not of what they are asked. */
static bool may_differ(size_t option)
{
    bool fleet = option >= SERVE_DP && option <= SERVE_WEIGHTS_FROM,
         deployment = option >= SERVE_WEIGHTS && option <= SERVE_ACCEPTANCE;
    return (fleet || deployment) && cli_serve_table[option].kind == CLI_VALUE;
}

static enum maq_status refuse(struct cli *cli, const char *setting)
{
    return cli_usage(cli, MAQ_CODE_CLI_VALUE, "--what-if 'replicas=4; spare-nodes=1 start-time=30s'",
                     "--what-if takes options of who serves with their values, not '%.60s'", setting);
}

static enum maq_status set(struct cli *cli, char *setting)
{
    char *value = strchr(setting, '=');
    size_t option = 0;
    if (!value)
        return refuse(cli, setting);
    *value++ = '\0';
    while (option < SERVE_COUNT && !(may_differ(option) && strcmp(cli_serve_table[option].name + 2, setting) == 0))
        option++;
    if (option == SERVE_COUNT || !*value)
        return refuse(cli, setting);
    const char *const *words = cli_serve_table[option].words;
    for (bool known = !words; !known; words++) {
        if (!*words)
            return refuse(cli, cli_printf(cli, "%s=%s", setting, value));
        known = strcmp(*words, value) == 0;
    }
    cli->values[option] = value;
    return MAQ_OK;
}

enum maq_status cli_serve_set_what_if(const char **what, struct cli *cli, const char *list, uint32_t number)
{
    for (; number > 0; number--)
        list += strcspn(list, ";") + 1;
    list += strspn(list, " ");
    size_t length = strcspn(list, ";");
    while (length > 0 && list[length - 1] == ' ')
        length--;
    *what = cli_printf(cli, "%.*s", (int)length, list);
    char *text = cli_printf(cli, "%.*s", (int)length, list);
    if (!*what || !text)
        return MAQ_NO_MEMORY;
    if (length == 0)
        return refuse(cli, "");
    for (char *at = text, *next; at; at = next) {
        next = strchr(at, ' ');
        if (next)
            *next++ = '\0';
        enum maq_status status = *at ? set(cli, at) : MAQ_OK;
        if (status != MAQ_OK)
            return status;
    }
    return MAQ_OK;
}
