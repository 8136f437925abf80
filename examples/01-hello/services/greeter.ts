import { setTimeout as pause } from "node:timers/promises";
import { TrellisService } from "@trellis/runtime/service";
import { greeterService, NameTaboo } from "../contracts/greeter.ts";

const service = await TrellisService.connect({ participant: greeterService }).orThrow();

service.handle.rpc.greeter.hello(({ input }) => {
  if (input.name === "Voldemort") return new NameTaboo({ data: { name: input.name, suggestion: "Tom" } });
  return { text: `Hello, ${input.name}!` };
});

service.handle.rpc.greeter.welcome(async ({ input, client }) => {
  // Typed from the translator's contract; trace, request id and what is left of the deadline go along.
  const { word } = await client.rpc.words.translate({ word: "hello", language: input.language }).orThrow();
  return { text: `${word}, ${input.name}!`, translatedBy: "hello.translator-service" };
});

service.handle.rpc.greeter.count(async ({ input, context }) => {
  let counted = 0;
  try {
    for (; counted < input.to; counted++) await pause(20, undefined, { signal: context.signal });
  } catch {
    console.log(`count: stopped at ${counted} of ${input.to}, nobody waits any more`);
  }
  return { counted };
});

service.health.setInfo({ version: "1.0.0" });
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => void service.stop());
await service.wait();
