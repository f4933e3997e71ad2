#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run_unit.sh PROGRAM: runs one cmocka program and passes its TAP on, mended where cmocka 1.1.5 and TAP differ.
#
# cmocka prints a skipped test as `not ok N # SKIP`, and a program with several groups prints one plan per group. Here tests are numbered
# through, skips are `ok ... # SKIP`, and there is one plan, at the end. A crash is one more failed test. A shell, since most of these
# programs take less time than an interpreter of anything more does to start.
{
    CMOCKA_MESSAGE_OUTPUT=TAP "$@" </dev/null 2>&1
    status=$?
    [ $status -le 128 ] || killed="SIG$(kill -l $status)"
    printf '\nrun_unit: exit %s %s\n' $status "$killed"
} | LC_ALL=C awk -v program="${1##*/}" '
BEGIN { print "TAP version 13" }
/^run_unit: exit / { status = $3 + 0; killed = $4; next }
/^[ \t]*1\.\.[0-9]+[ \t\r]*$/ { sub(/^[ \t]*1\.\./, ""); planned += $0; next }
/^(not ok|ok)/ {
    verdict = /^not/ ? "not ok" : "ok"
    name = $0
    sub(/^(not ok|ok)[ \t]*[0-9]*[ \t]*(-[ \t]*)?/, "", name)
    seen++
    said = 0
    if (sub(/^#?[ \t]*SKIP[ \t]*/, "", name)) {
        print "ok " seen " - " name " # SKIP"
    } else {
        failed += verdict != "ok"
        gsub(/#/, " ", name)
        print verdict " " seen " - " name
    }
    next
}
/[^ \t\r]/ { print "# " $0; recent[said++] = $0 }
END {
    if (killed != "" || planned != seen || (status && !failed)) {
        why = killed != "" ? "killed by " killed : "exit status " status " after " seen + 0 " of " planned + 0 " tests"
        print "not ok " ++seen " - " program " " why
        for (i = said > 60 ? said - 60 : 0; i < said; i++) print "# " recent[i]
    }
    print "1.." seen + 0
}'
