import { expect, test } from "vitest";
import { terminalText } from "./terminal-text.ts";

test.each([
  ["plain, with\ttabs\nand ends of lines: ä 漢 🙂", "plain, with\ttabs\nand ends of lines: ä 漢 🙂"],
  ["\x1b[31mred\x1b]0;title\x07", "^[[31mred^[]0;title^G"],
  ["one\rother\b\0", "one\\rother^H^@"],
  ["\x9b2J\x7f", "\\x9b2J\\x7f"],
])("%j is shown as %j", (text, shown) => expect(terminalText(text)).toBe(shown));
