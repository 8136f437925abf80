import { expect, test } from "vitest";
import { CtrlCs } from "./ctrl-c.ts";

test("a key press that arrives twice is one, a second one is another", () => {
  const heard = new CtrlCs();
  expect(heard.heard(1_000)).toBe("first");
  expect(heard.heard(1_001)).toBe("echo");
  expect(heard.heard(1_999)).toBe("echo");
  expect(heard.heard(2_000)).toBe("again");
});
