import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import type { ConnectedClient } from "@trellis/runtime";
import { startNats, startTrellis } from "@trellis/testing";
import { streamApp } from "./contract.js";

const providerFile = fileURLToPath(new URL("./provider.js", import.meta.url));

/** Two nats-servers, the control plane, and one process that produces and publishes. */
export interface FeedBed extends AsyncDisposable {
  readonly nats: NatsConnection;
  readonly client: ConnectedClient<typeof streamApp>;
  readonly provider: ChildProcess;
}

export async function makeFeedBed(): Promise<FeedBed> {
  const trellis = await startTrellis();
  const plain = await startNats();
  const provider = fork(providerFile, [plain.url], {
    env: { ...process.env, ...trellis.env() },
    execArgv: ["--expose-gc", ...profiling()],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  await once(provider, "message");
  const nats = await connect({ servers: plain.url });
  const client = await trellis.client(streamApp);
  return {
    nats,
    client,
    provider,
    async [Symbol.asyncDispose]() {
      provider.disconnect();
      await once(provider, "exit");
      await nats.close();
      await plain.stop();
      await trellis.stop();
    },
  };
}

/** The provider is profiled when we are. */
function profiling(): string[] {
  return process.execArgv.filter((flag) => flag.startsWith("--cpu-prof"));
}
