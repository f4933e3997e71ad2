# SPDX-License-Identifier: Apache-2.0
"""A picture as SVG text: rectangles, lines, words, and charts with axes. Coordinates are pixels, y goes down.

What is drawn has at most one decimal place, so that the same figures give the same bytes wherever it runs.
"""
import html
import math
import textwrap

BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#bab0ac"
STYLE = ("text{fill:#222}.t{font-size:17px;font-weight:600}.s{font-weight:600}.l{fill:#666;font-size:11px}"
         ".c{fill:#666;font-size:11px;font-family:monospace}.g{stroke:#ddd;fill:none}.k{stroke:#999;fill:none}")


def number(x):
    return f"{x:.1f}".removesuffix(".0").replace("-0", "0") if abs(x) < 0.05 else f"{x:.1f}".removesuffix(".0")


class Picture:
    def __init__(self, width, height, title, command):
        """`command` is what the figures are of, and stands below in as many lines as it takes."""
        self.width, self.height, self.parts = width, height, []
        self.text(20, 28, title, "t")
        lines = textwrap.wrap("$ " + command, int((width - 40) / 6.7), break_on_hyphens=False)
        for above, line in enumerate(reversed(lines)):
            self.text(20, height - 14 - 14 * above, line + " \\" * (above > 0), "c")

    def add(self, part):
        self.parts.append(part)

    def rect(self, x, y, w, h, color, opacity=1.0, words=None):
        inside = f"><title>{html.escape(words)}</title></rect>" if words else "/>"
        more = f' fill-opacity="{opacity:g}"' if opacity != 1.0 else ""
        self.add(f'<rect x="{number(x)}" y="{number(y)}" width="{number(w)}" height="{number(h)}" fill="{color}"{more}{inside}')

    def text(self, x, y, words, kind="", anchor="", color=""):
        more = (f' class="{kind}"' if kind else "") + (f' text-anchor="{anchor}"' if anchor else "") + (f' style="fill:{color}"' if color else "")
        self.add(f'<text x="{number(x)}" y="{number(y)}"{more}>{html.escape(words, quote=False)}</text>')

    def path(self, points, color, width=2.0, closed=False, dash="", opacity=0.0):
        """A line through points; of a closed one the inside is filled as well, `opacity` of it."""
        d = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points) + ("Z" if closed else "")
        fill = f'fill="{color}" fill-opacity="{opacity:g}"' if closed else 'fill="none"'
        stroke = f'stroke="{color}" stroke-width="{width:g}"' if width else 'stroke="none"'
        self.add(f'<path d="{d}" {fill} {stroke}' + (f' stroke-dasharray="{dash}"' if dash else "") + "/>")

    def dot(self, x, y, color, radius=3.0, opacity=1.0):
        more = f' fill-opacity="{opacity:g}"' if opacity != 1.0 else ""
        self.add(f'<circle cx="{number(x)}" cy="{number(y)}" r="{radius:g}" fill="{color}"{more}/>')

    def legend(self, x, y, entries):
        for color, words in entries:
            self.rect(x, y - 9, 10, 10, color)
            self.text(x + 15, y, words, "l")
            x += 35 + 6.1 * len(words)

    def svg(self):
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}" '
                f'font-family="sans-serif" font-size="12">')
        return "\n".join([head, f"<style>{STYLE}</style>", f'<path fill="#fff" d="M0 0h{self.width}v{self.height}H0z"/>', *self.parts, "</svg>"]) + "\n"


def round_steps(low, high, most):
    """Round numbers from low to high, at most so many."""
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(power * factor for factor in (1, 2, 5, 10) if (high - low) / (power * factor) <= most)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


class Chart:
    """Two axes in a box; x and y are (low, high), logarithmic where it is said."""

    def __init__(self, picture, box, x, y, log_x=False, log_y=False):
        self.picture, self.box, self.x, self.y, self.log_x, self.log_y = picture, box, x, y, log_x, log_y

    def at(self, x, y):
        left, top, width, height = self.box

        def share(v, low, high, log):
            return math.log(v / low) / math.log(high / low) if log else (v - low) / (high - low)
        return left + width * share(x, *self.x, self.log_x), top + height * (1 - share(min(y, self.y[1]), *self.y, self.log_y))

    def axes(self, x_title, y_title, x_words=str, y_words=str, x_steps=None, y_steps=None):
        left, top, width, height = self.box
        for v in x_steps or round_steps(*self.x, 8):
            x, _ = self.at(v, self.y[0])
            self.picture.add(f'<path class="g" d="M{number(x)} {number(top)}v{number(height)}"/>')
            self.picture.text(x, top + height + 16, x_words(v), "l", "middle")
        for v in y_steps or round_steps(*self.y, 6):
            _, y = self.at(self.x[0], v)
            self.picture.add(f'<path class="g" d="M{number(left)} {number(y)}h{number(width)}"/>')
            self.picture.text(left - 7, y + 4, y_words(v), "l", "end")
        self.picture.add(f'<path class="k" d="M{number(left)} {number(top)}v{number(height)}h{number(width)}"/>')
        self.picture.text(left + width / 2, top + height + 34, x_title, "l", "middle")
        self.picture.text(left, top - 9, y_title, "s")

    def line(self, points, color, label=None, width=2.0, dash="", dots=True, down=4):
        """`label` stands behind the last point, `down` from its middle."""
        placed = [self.at(x, y) for x, y in points]
        self.picture.path(placed, color, width, dash=dash)
        for (x, y), (_, value) in zip(placed, points):
            if dots and value <= self.y[1]:
                self.picture.dot(x, y, color)
        if label:
            self.picture.text(placed[-1][0] + 8, placed[-1][1] + down, label, "l", color=color)

    def band(self, low, high, color, opacity=0.15):
        self.picture.path([self.at(x, y) for x, y in low] + [self.at(x, y) for x, y in reversed(high)], color, 0, True, opacity=opacity)
