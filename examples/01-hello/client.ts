import { TrellisClient } from "@trellis/runtime";
import { helloApp } from "./contracts/greeter.ts";

await using client = await TrellisClient.connect({
  participant: helloApp,
  runtime: { log: false },
}).orThrow();

// An answer.
const hello = await client.rpc.greeter.hello({ name: "Ada" });
if (hello.isOk()) console.log(hello.value.text);

// An expected failure: the switch is exhaustive over what the action declares.
const taboo = await client.rpc.greeter.hello({ name: "Voldemort" });
if (taboo.isErr() && taboo.error.kind === "declared") {
  switch (taboo.error.type) {
    case "NameTaboo":
      console.log(`${taboo.error.message}; try ${taboo.error.data.suggestion}`);
  }
}

// A call that makes another call.
const welcome = await client.rpc.greeter.welcome({ name: "Ada", language: "fr" }).orThrow();
console.log(`${welcome.text} (translated by ${welcome.translatedBy})`);

// A slow call, given up after 300 ms: the handler at the other end stops too.
const slow = await client.rpc.greeter.count({ to: 1000 }, { signal: AbortSignal.timeout(300) });
console.log(slow.isErr() ? slow.error.message : slow.value.counted);
