# SPDX-License-Identifier: Apache-2.0
"""charts.py - SVG charts of the benchmark's figures, without any library.

line_chart() has one line for each competitor, with bars from the least to the most of its runs;
bar_chart() has groups of bars. Axes say what they are and in which unit.
"""
import html
import math

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 46, 56
# Okabe and Ito's colours, which colour-blind readers can distinguish.
COLOURS = ["#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
MARKS = ["circle", "square", "diamond", "triangle"]


def size_text(size):
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return "%d %s" % (size >> shift, unit)
    return "%d B" % size


def number_text(value):
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = "%.*f" % (min(digits, 4), value)
    return text.rstrip("0").rstrip(".") if "." in text else text


class Axis:
    """Maps values to pixels, and has the axis's ticks."""

    def __init__(self, values, pixels, log, ticks=None):
        self.log = log
        low, high = min(values), max(values)
        if log:
            low, high = low / 1.15, high * 1.15
            self.ticks = ticks or self._decades(low, high)
            low, high = min([low] + self.ticks), max([high] + self.ticks)
        else:
            step = self._step(high)
            low, high = 0, step * max(1, math.ceil(high * 1.02 / step))
            self.ticks = ticks or [step * i for i in range(round(high / step) + 1)]
        self.low, self.high, self.pixels = low, high, pixels

    @staticmethod
    def _step(high):
        rough = (high or 1) / 6
        power = 10 ** math.floor(math.log10(rough))
        return next(power * f for f in (1, 2, 2.5, 5, 10) if power * f >= rough)

    @staticmethod
    def _decades(low, high):
        ticks = [f * 10 ** e for e in range(-6, 10) for f in (1, 2, 5)]
        found = [t for t in ticks if low * 0.99 <= t <= high * 1.01]
        return found if len(found) > 1 else [low, high]

    def at(self, value):
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        part = (value - low) / (high - low) if high > low else 0.5
        return self.pixels[0] + part * (self.pixels[1] - self.pixels[0])


class Svg:
    def __init__(self, title, x_label, y_label, note):
        self.parts = []
        self.text(LEFT, 24, title, size=16, weight="bold")
        self.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, x_label, anchor="middle")
        y = (TOP + HEIGHT - BOTTOM) / 2
        self.text(18, y, y_label, anchor="middle", turn=-90)
        if note:
            self.text(LEFT, 40, note, size=11, colour="#555")

    def add(self, text):
        self.parts.append(text)

    def text(self, x, y, text, anchor="start", size=12, weight="normal", colour="#222", turn=0):
        turned = ' transform="rotate(%d %.1f %.1f)"' % (turn, x, y) if turn else ""
        self.add('<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d" font-weight="%s" '
                 'fill="%s"%s>%s</text>' %
                 (x, y, anchor, size, weight, colour, turned, html.escape(text)))

    def line(self, x1, y1, x2, y2, colour="#ccc", width=1):
        self.add('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" '
                 'stroke-width="%.1f"/>' % (x1, y1, x2, y2, colour, width))

    def rectangle(self, x, y, width, height, colour):
        self.add('<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>' %
                 (x, y, width, height, colour))

    def mark(self, x, y, shape, colour):
        r = 4
        if shape == "circle":
            self.add('<circle cx="%.1f" cy="%.1f" r="%d" fill="%s"/>' % (x, y, r, colour))
        elif shape == "square":
            self.rectangle(x - r, y - r, 2 * r, 2 * r, colour)
        else:
            r = 5
            points = [(0, -r), (r, 0), (0, r), (-r, 0)] if shape == "diamond" else \
                [(0, -r), (r, r), (-r, r)]
            self.add('<polygon points="%s" fill="%s"/>' %
                     (" ".join("%.1f,%.1f" % (x + dx, y + dy) for dx, dy in points), colour))

    def y_axis(self, axis):
        for tick in axis.ticks:
            y = axis.at(tick)
            self.line(LEFT, y, WIDTH - RIGHT, y, "#e4e4e4")
            self.text(LEFT - 8, y + 4, number_text(tick), anchor="end")
        self.line(LEFT, TOP, LEFT, HEIGHT - BOTTOM, "#444")
        self.line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "#444")

    def legend(self, i, name, colour, shape):
        x, y = WIDTH - RIGHT + 18, TOP + 14 + 22 * i
        self.mark(x, y - 4, shape, colour)
        self.text(x + 14, y, name)

    def write(self, path):
        with open(path, "w") as out:
            out.write('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" '
                      'height="%d" font-family="sans-serif">\n'
                      '<rect width="100%%" height="100%%" fill="white"/>\n%s\n</svg>\n' %
                      (WIDTH, HEIGHT, WIDTH, HEIGHT, "\n".join(self.parts)))


def line_chart(path, title, x_label, y_label, lines, x_text=str, log_y=False, note=""):
    """lines: [(name, [(x, median, least, most), ...])]; x is on a log axis."""
    svg = Svg(title, x_label, y_label, note)
    xs = sorted({point[0] for _, points in lines for point in points})
    values = [v for _, points in lines for point in points for v in point[1:]]
    x_axis = Axis(xs, (LEFT + 10, WIDTH - RIGHT - 10), True, xs)
    y_axis = Axis(values, (HEIGHT - BOTTOM, TOP + 6), log_y)
    svg.y_axis(y_axis)
    for x in xs:
        svg.line(x_axis.at(x), HEIGHT - BOTTOM, x_axis.at(x), HEIGHT - BOTTOM + 5, "#444")
        svg.text(x_axis.at(x), HEIGHT - BOTTOM + 20, x_text(x), anchor="middle", size=11)
    for i, (name, points) in enumerate(lines):
        colour, shape = COLOURS[i % len(COLOURS)], MARKS[i % len(MARKS)]
        path_points = " ".join("%.1f,%.1f" % (x_axis.at(p[0]), y_axis.at(p[1])) for p in points)
        svg.add('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>' %
                (path_points, colour))
        for x, median, least, most in points:
            svg.line(x_axis.at(x), y_axis.at(least), x_axis.at(x), y_axis.at(most), colour, 1.2)
            svg.mark(x_axis.at(x), y_axis.at(median), shape, colour)
        svg.legend(i, name, colour, shape)
    svg.write(path)


def bar_chart(path, title, x_label, y_label, groups, note="", log_y=False, limits=None):
    """groups: [(name, [(bar's name, median, least, most), ...])]; limits: {group: value}."""
    svg = Svg(title, x_label, y_label, note)
    names = []
    for _, bars in groups:
        names += [bar[0] for bar in bars if bar[0] not in names]
    values = [v for _, bars in groups for bar in bars for v in bar[1:]]
    y_axis = Axis(values + list((limits or {}).values()), (HEIGHT - BOTTOM, TOP + 6), log_y)
    svg.y_axis(y_axis)
    room = (WIDTH - RIGHT - LEFT) / len(groups)
    width = min(34.0, room * 0.8 / max(1, max(len(bars) for _, bars in groups)))
    for g, (group, bars) in enumerate(groups):
        middle = LEFT + room * (g + 0.5)
        x = middle - width * len(bars) / 2
        for bar, median, least, most in bars:
            colour = COLOURS[names.index(bar) % len(COLOURS)]
            top, bottom = y_axis.at(median), HEIGHT - BOTTOM
            svg.rectangle(x + 1, top, width - 2, bottom - top, colour)
            svg.line(x + width / 2, y_axis.at(least), x + width / 2, y_axis.at(most), "#222", 1.2)
            x += width
        if limits and group in limits:
            y = y_axis.at(limits[group])
            svg.line(middle - room * 0.42, y, middle + room * 0.42, y, "#222", 2)
        for row, part in enumerate(group.split(", ")):
            svg.text(middle, HEIGHT - BOTTOM + 16 + 13 * row, part, anchor="middle", size=11)
    for i, name in enumerate(names):
        svg.legend(i, name, COLOURS[i % len(COLOURS)], "square")
    svg.write(path)
