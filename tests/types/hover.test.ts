import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LanguageServer } from "./language-server.ts";

const here = dirname(fileURLToPath(import.meta.url));
const path = join(here, "hover-subject.ts");
const text = readFileSync(path, "utf8");

let server: LanguageServer;
let uri: string;

beforeAll(async () => {
  server = await LanguageServer.start(join(here, "..", ".."));
  uri = server.open(path, text);
});
afterAll(() => server[Symbol.asyncDispose]());

/** Hovers over the word after the marker. */
function hover(before: string, word: string): Promise<string> {
  const at = text.indexOf(word, text.indexOf(before));
  const lines = text.slice(0, at).split("\n");
  return server.hover(uri, { line: lines.length - 1, character: lines.at(-1)?.length ?? 0 });
}

describe("what an editor shows", () => {
  it.each([
    ["client.rpc.greeter.", "hello"],
    ["export const ", "called"],
    ["const failure", "failure"],
    ["async ({ input", "input"],
    ["inner.rpc.words.", "translate"],
    ["desk.feed.audit.", "live"],
    ["for await (const ", "entry"],
    ["async ({ input: view, ", "emit"],
  ])("over %s%s is short and names no machinery", async (before, word) => {
    const shown = await hover(before, word);
    expect(shown).not.toBe("");
    expect(shown).not.toMatch(/\bany\b/);
    // The editor breaks types into lines; what counts is what there is to read.
    const read = shown.replace(/\s+/g, " ");
    expect(read.length, read).toBeLessThan(200);
  });

  it.each([
    ["client.rpc.greeter.", "rpc"],
    ["client.rpc.greeter.", "greeter"],
    ["service.handle.", "handle"],
    ["service.handle.", "greeter"],
    ["rpc.greeter.", "welcome"],
    ["client: inner", "inner"],
    ["inner.rpc.words.", "rpc"],
    ["desk.feed.audit.", "feed"],
    ["desk.feed.audit.", "audit"],
    ["auditing.handle.feed.", "feed"],
    ["auditing.handle.feed.audit.", "live"],
  ])(
    "over %s%s is what can be called or handled there, not the contract that it comes from",
    async (before, word) => {
      const shown = await hover(before, word);
      expect(shown).toMatch(/greeter|words|audit|RpcHandler|RpcCaller|FeedOpener|FeedHandle/);
      expect(shown).not.toMatch(/\bany\b|Participant<|RpcAction<|FeedAction<|Facade|TObject/);
    },
  );

  it("narrows to exactly the declared errors", async () => {
    expect(await hover("const declaredType", "declaredType")).toBe('const declaredType: "NameTaboo"');
  });
});
