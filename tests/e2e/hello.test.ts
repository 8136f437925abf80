import { startTrellis } from "@trellis/testing";
import { describe, expect, it } from "vitest";
import { greeter, greeterService, helloApp, NameTaboo } from "../../examples/01-hello/contracts/greeter.ts";
import { translatorService, UnknownLanguage } from "../../examples/01-hello/contracts/translator.ts";

async function startHello() {
  const trellis = await startTrellis();
  await trellis.service(translatorService, (service) => {
    service.handle.rpc.words.translate(({ input }) =>
      input.language === "fr"
        ? { word: "Bonjour" }
        : new UnknownLanguage({ data: { language: input.language, known: ["fr"] } }),
    );
  });
  let stoppedBy: unknown;
  await trellis.service(greeterService, (service) => {
    service.handle.rpc.greeter.hello(({ input }) =>
      input.name === "x"
        ? new NameTaboo({ data: { name: "x", suggestion: "y" } })
        : { text: `Hello, ${input.name}!` },
    );
    service.handle.rpc.greeter.welcome(async ({ input, client }) => {
      const { word } = await client.rpc.words
        .translate({ word: "hello", language: input.language })
        .orThrow();
      return { text: `${word}, ${input.name}!`, translatedBy: "translator" };
    });
    service.handle.rpc.greeter.count(
      ({ context }) =>
        new Promise((resolve) => {
          context.signal.addEventListener("abort", () => {
            stoppedBy = context.signal.reason;
            resolve({ counted: 1 });
          });
        }),
    );
  });
  const client = await trellis.client(helloApp);
  return { trellis, client, stoppedBy: () => stoppedBy, [Symbol.asyncDispose]: () => trellis.stop() };
}

describe("the first API", () => {
  it("answers, fails as declared, calls on, and is cancelled at the other end", async () => {
    await using hello = await startHello();
    const { rpc } = hello.client;
    expect((await rpc.greeter.hello({ name: "Ada" })).orThrow()).toEqual({ text: "Hello, Ada!" });

    const taboo = await rpc.greeter.hello({ name: "x" });
    expect(taboo.isErr() && taboo.error).toBeInstanceOf(NameTaboo);

    const welcome = await rpc.greeter.welcome({ name: "Ada", language: "fr" });
    expect(welcome.orThrow().text).toBe("Bonjour, Ada!");

    const slow = await rpc.greeter.count({ to: 9 }, { signal: AbortSignal.timeout(50) });
    expect(slow.isErr() && slow.error.type).toBe("CancelledError");
    await expect.poll(hello.stoppedBy).toMatchObject({ type: "CancelledError" });
  });

  it("keeps the text of an undeclared failure at the provider", async () => {
    await using hello = await startHello();
    const failed = await hello.client.rpc.greeter.welcome({ name: "Ada", language: "xx" });
    expect(failed.isErr() && failed.error.type).toBe("UnexpectedError");
    expect(JSON.stringify(failed)).not.toContain("UnknownLanguage");
    expect(greeter.rpc["Greeter.Hello"].api).toBe("hello.greeter@v1");
  });
});
