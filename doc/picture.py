#!/usr/bin/env python3
"""Takes the README's picture: a real sitting in tmux, captured as text and as SVG.

  picture.py [--fader build/fader] [--size 80x24] [--text FILE] [--svg FILE] [-- fader options]

Runs the steps of SITTING: keys to send, and what must stand on the screen before the next step."""
import argparse
import html
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import unicodedata

# (keys for tmux send-keys, or text to type; a pattern to wait for)
SITTING = [
    (None, r"\bready\b"),
    ("keys:C-x - C-x - C-x -", r"pace 12"),
    ("text:Two lines about rain on a tin roof.", r"tin roof\."),
    ("keys:Enter", r"roof\.[\s\S]*\n   \w+ \w+ \w+ \w+ \w+ \w+"),
    ("keys:C-x Right Right Right Right Right Right Right Right", r"\n T "),
    ("keys:C-x Space", r"PAUSED"),
    ("keys:C-x . C-x . C-x .", r"PAUSED[\s\S]*next word"),
]
TIMEOUT = 60


class Tmux:
    def __init__(self, columns, rows, command):
        self.name = f"fader-picture-{os.getpid()}"
        self.run("new-session", "-d", "-x", str(columns), "-y", str(rows), command)
        self.run("set", "-g", "status", "off")
        self.run("set", "-sg", "escape-time", "0")

    def run(self, *words):
        return subprocess.run(["tmux", "-L", self.name, "-f", "/dev/null", *words], check=True,
                              stdout=subprocess.PIPE, text=True).stdout

    def screen(self, colours=False):
        return self.run("capture-pane", "-p", *(["-e"] if colours else []))

    def wait(self, pattern):
        deadline = time.monotonic() + TIMEOUT
        while not re.search(pattern, self.screen()):
            if time.monotonic() > deadline:
                sys.exit(f"picture: waited in vain for {pattern!r}:\n{self.screen()}")
            time.sleep(0.05)

    def step(self, action, pattern):
        kind, _, what = (action or "").partition(":")
        if kind == "text":
            self.run("send-keys", "-l", what)
        elif kind == "keys":
            self.run("send-keys", *what.split())
        self.wait(pattern)

    def close(self):
        subprocess.run(["tmux", "-L", self.name, "kill-server"], check=False)


# ---- SVG ----------------------------------------------------------------------------------------

CELL_W, CELL_H, MARGIN = 8.4, 18, 12
GROUND, TEXT = "#16181d", "#d6d9de"
BASE16 = ["#16181d", "#d0605e", "#8bab5f", "#d2a35a", "#6a93c4", "#a878b4", "#5fa8a0", "#c8ccd2",
          "#636a75", "#e07a76", "#a5c878", "#e8c07a", "#88b0de", "#c294cc", "#7cc4bc", "#f0f2f4"]


def colour_256(n):
    if n < 16:
        return BASE16[n]
    if n < 232:
        r, g, b = (n - 16) // 36, (n - 16) // 6 % 6, (n - 16) % 6
        return "#%02x%02x%02x" % tuple(0 if v == 0 else 55 + 40 * v for v in (r, g, b))
    return "#%02x%02x%02x" % ((8 + 10 * (n - 232),) * 3)


class Look:
    def __init__(self):
        self.reset()

    def reset(self):
        self.fg = self.bg = None
        self.bold = self.dim = self.underline = self.reverse = self.italic = False

    def apply(self, codes):
        codes = [int(c or 0) for c in codes]
        while codes:
            c = codes.pop(0)
            if c == 0:
                self.reset()
            elif c in (1, 2, 3, 4, 7):
                setattr(self, {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse"}[c], True)
            elif c == 22:
                self.bold = self.dim = False
            elif c in (23, 24, 27):
                setattr(self, {23: "italic", 24: "underline", 27: "reverse"}[c], False)
            elif c in (38, 48):
                kind = codes.pop(0)
                value = (colour_256(codes.pop(0)) if kind == 5
                         else "#%02x%02x%02x" % (codes.pop(0), codes.pop(0), codes.pop(0)))
                setattr(self, "fg" if c == 38 else "bg", value)
            elif 30 <= c <= 37 or 90 <= c <= 97:
                self.fg = BASE16[c - 30 if c < 90 else c - 82]
            elif 40 <= c <= 47 or 100 <= c <= 107:
                self.bg = BASE16[c - 40 if c < 100 else c - 92]
            elif c == 39:
                self.fg = None
            elif c == 49:
                self.bg = None

    def colours(self):
        fg, bg = self.fg or TEXT, self.bg
        return (bg or GROUND, fg) if self.reverse else (fg, bg)


def width_of(char):
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def row_to_svg(line, row, out):
    look, column = Look(), 0
    y = MARGIN + row * CELL_H
    for part in re.split(r"(\x1b\[[0-9;:]*m)", line):
        if part.startswith("\x1b["):
            look.apply(part[2:-1].replace(":", ";").split(";"))
            continue
        part = re.sub(r"\x1b[()].|[\x0e\x0f]", "", part)
        if not part:
            continue
        fg, bg = look.colours()
        columns = sum(map(width_of, part))
        x = MARGIN + column * CELL_W
        if bg:
            out.append(f'<rect x="{x:.1f}" y="{y}" width="{columns * CELL_W:.1f}" '
                       f'height="{CELL_H}" fill="{bg}"/>')
        if part.strip():
            style = ((' font-weight="bold"' if look.bold else "")
                     + (' font-style="italic"' if look.italic else "")
                     + (' text-decoration="underline"' if look.underline else "")
                     + (' opacity="0.6"' if look.dim else ""))
            out.append(f'<text x="{x:.1f}" y="{y + 13.5}" textLength="{columns * CELL_W:.1f}" '
                       f'fill="{fg}"{style}>{html.escape(part)}</text>')
        column += columns


def svg(screen, columns, rows):
    width, height = columns * CELL_W + 2 * MARGIN, rows * CELL_H + 2 * MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
           f'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" '
           f'xml:space="preserve">',
           f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/>']
    for row, line in enumerate(screen.split("\n")[:rows]):
        row_to_svg(line, row, out)
    return "\n".join(out + ["</svg>", ""])


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fader", default=os.path.join(root, "build/fader"))
    parser.add_argument("--size", default="80x24")
    parser.add_argument("--text")
    parser.add_argument("--svg")
    parser.add_argument("options", nargs="*")
    options = parser.parse_args()
    columns, rows = map(int, options.size.split("x"))

    with tempfile.TemporaryDirectory() as home:
        words = [options.fader, "--no-save", "--preset", "poetry", *options.options]
        command = (f"env XDG_CONFIG_HOME={shlex.quote(home)} XDG_STATE_HOME={shlex.quote(home)} "
                   f"FADER_DATA_DIR={shlex.quote(root)} TERM=tmux-256color LC_ALL=C.UTF-8 {shlex.join(words)}")
        tmux = Tmux(columns, rows, command)
        try:
            for action, pattern in SITTING:
                tmux.step(action, pattern)
            text, coloured = tmux.screen(), tmux.screen(colours=True)
        finally:
            tmux.close()
    if options.text:
        with open(options.text, "w", encoding="utf-8") as f:
            f.write("\n".join(line.rstrip() for line in text.split("\n")))
    if options.svg:
        with open(options.svg, "w", encoding="utf-8") as f:
            f.write(svg(coloured, columns, rows))
    if not options.text and not options.svg:
        print(text, end="")


main()
