import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import type { ConnectedClient } from "@trellis/runtime";
import { startNats, startTrellis, type TestNats, type TestTrellis } from "@trellis/testing";
import { benchApp } from "./contract.js";

const providerFile = fileURLToPath(new URL("./provider.js", import.meta.url));

/** Everything that runs while we measure: two nats-servers, the control plane, providers in their own processes. */
export interface Bed extends AsyncDisposable {
  readonly trellis: TestTrellis;
  readonly plain: TestNats;
  readonly nats: NatsConnection;
  readonly client: ConnectedClient<typeof benchApp>;
  addProvider(name: string, plain?: boolean): Promise<ChildProcess>;
}

export async function makeBed(): Promise<Bed> {
  const trellis = await startTrellis();
  const plain = await startNats();
  const nats = await connect({ servers: plain.url });
  const children: ChildProcess[] = [];
  const addProvider = async (name: string, withPlain = true) => {
    const child = fork(providerFile, withPlain ? [name, plain.url] : [name], {
      env: { ...process.env, ...trellis.env() },
      execArgv: ["--expose-gc"],
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    children.push(child);
    await once(child, "message");
    return child;
  };
  await addProvider("1");
  const client = await trellis.client(benchApp);
  return {
    trellis,
    plain,
    nats,
    client,
    addProvider,
    async [Symbol.asyncDispose]() {
      for (const child of children) child.kill();
      await nats.close();
      await plain.stop();
      await trellis.stop();
    },
  };
}

export async function memoryOf(child: ChildProcess): Promise<{ rss: number; heap: number }> {
  child.send("memory");
  const [answer] = await once(child, "message");
  return answer as { rss: number; heap: number };
}
