import { setTimeout as pause } from "node:timers/promises";
import type { ConnectedClient } from "@trellis/runtime";
import type { helloApp } from "../../examples/01-hello/contracts/greeter.ts";
import { story } from "./story.ts";

type Client = ConnectedClient<typeof helloApp>;

const calls = 1_000;
const warmUp = 100;

/** Makes the calls of examples/01-hello/client.ts and shows what comes of each. Throws when one goes wrong. */
export async function takeTour(client: Client, lines: readonly string[]): Promise<void> {
  await answer(client);
  await declaredError(client);
  await callChain(client);
  await cancellation(client, lines);
  await manyCalls(client);
}

async function answer({ rpc }: Client): Promise<void> {
  // The first call of all looks the caller up; the second is what calls cost from then on.
  await rpc.greeter.hello({ name: "world" }).orThrow();
  const [hello, ms] = await timed(() => rpc.greeter.hello({ name: "Ada" }).orThrow());
  story.scene({
    title: "A call",
    code: 'await client.rpc.greeter.hello({ name: "Ada" })',
    outcome: [hello.text],
    ms,
  });
}

async function declaredError({ rpc }: Client): Promise<void> {
  const [taboo, ms] = await timed(() => rpc.greeter.hello({ name: "Voldemort" }));
  if (taboo.isOk() || taboo.error.type !== "NameTaboo") throw new Error("NameTaboo was expected.");
  const { message, data } = taboo.error;
  story.scene({
    title: "An error that the contract declares: data, not an exception",
    code: 'await client.rpc.greeter.hello({ name: "Voldemort" })',
    outcome: [`NameTaboo: ${message}; its data suggests ${data.suggestion}`],
    ms,
  });
}

async function callChain({ rpc }: Client): Promise<void> {
  // The greeter may have started before the translator, and asks for the way to it now.
  await rpc.greeter.welcome({ name: "world", language: "de" }).orThrow();
  const [welcome, ms] = await timed(() => rpc.greeter.welcome({ name: "Ada", language: "fr" }).orThrow());
  story.scene({
    title: "A call that makes another call",
    code: 'await client.rpc.greeter.welcome({ name: "Ada", language: "fr" })',
    outcome: [welcome.text, `the greeter asked ${welcome.translatedBy} for the word`],
    ms,
  });
}

async function cancellation({ rpc }: Client, lines: readonly string[]): Promise<void> {
  const seen = lines.length;
  const [slow, ms] = await timed(() => rpc.greeter.count({ to: 1000 }, { signal: AbortSignal.timeout(300) }));
  if (slow.isOk()) throw new Error("A cancelled call was expected.");
  const noticed = await lineWith(lines, seen, "stopped at");
  story.scene({
    title: "A slow call, given up after 300 ms",
    code: "await client.rpc.greeter.count({ to: 1000 }, { signal: AbortSignal.timeout(300) })",
    outcome: [`${slow.error.type}, and at the other end the greeter wrote:`, `"${noticed}"`],
    ms,
  });
}

async function manyCalls({ rpc }: Client): Promise<void> {
  const once = () => rpc.greeter.hello({ name: "Ada" }).orThrow();
  for (let count = 0; count < warmUp; count += 1) await once();
  const times: number[] = [];
  const [, total] = await timed(async () => {
    for (let count = 0; count < calls; count += 1) times.push((await timed(once))[1]);
  });
  times.sort((left, right) => left - right);
  const at = (share: number) => `${(times[Math.floor(share * (calls - 1))] ?? 0).toFixed(2)} ms`;
  const [, together] = await timed(() => Promise.all(Array.from({ length: calls }, once)));
  story.scene({
    title: `${calls.toLocaleString("en")} calls, each authenticated in both directions and validated at both ends`,
    code: 'for (...) await client.rpc.greeter.hello({ name: "Ada" })',
    outcome: [
      `one after the other: p50 ${at(0.5)}, p99 ${at(0.99)}, ${perSecond(total)} calls a second`,
      `all at once: ${perSecond(together)} calls a second`,
    ],
  });
}

function perSecond(ms: number): string {
  return Math.round((calls * 1000) / ms).toLocaleString("en");
}

async function timed<T>(work: () => PromiseLike<T>): Promise<[T, number]> {
  const started = performance.now();
  const value = await work();
  return [value, performance.now() - started];
}

/** The first line after `from` that holds a text; the services' output takes its own way here. */
async function lineWith(lines: readonly string[], from: number, text: string): Promise<string> {
  for (let waited = 0; waited < 5_000; waited += 10) {
    const found = lines.slice(from).find((line) => line.includes(text));
    if (found !== undefined) return found;
    await pause(10);
  }
  throw new Error("The provider did not notice that the call was given up.");
}
