import { startTrellis } from "@trellis/testing";
import { expect, it } from "vitest";
import { greeterService, helloApp } from "../../examples/01-hello/contracts/greeter.ts";
import { translatorService } from "../../examples/01-hello/contracts/translator.ts";

it("a service that started before its provider calls it as soon as it is there", async () => {
  await using trellis = await startTrellis();
  await trellis.service(greeterService, ({ handle }) => {
    handle.rpc.greeter.hello(({ input }) => ({ text: `Hello, ${input.name}!` }));
    handle.rpc.greeter.welcome(async ({ input, client }) => {
      const { word } = await client.rpc.words
        .translate({ word: "hello", language: input.language })
        .orThrow();
      return { text: `${word}, ${input.name}!`, translatedBy: "somebody" };
    });
  });
  const client = await trellis.client(helloApp);
  await trellis.service(translatorService, ({ handle }) => {
    handle.rpc.words.translate(() => ({ word: "Bonjour" }));
  });
  // Many at once: each of them finds the API unbound, and only then allowed.
  const calls = Array.from({ length: 20 }, () => client.rpc.greeter.welcome({ name: "Ada", language: "fr" }));
  const answers = await Promise.all(calls);
  for (const answer of answers) expect(answer.orThrow().text).toBe("Bonjour, Ada!");
});
