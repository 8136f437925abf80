import type { NatsConnection } from "@nats-io/transport-node";
import type { BrokerUser, KeyRing } from "../identity/key-ring.ts";
import { connectAccount } from "./account-link.ts";

/** The control plane's connections to the broker, one into each account. */
export interface Links extends Readonly<Record<BrokerUser, NatsConnection>> {
  /** Names a link that is down now; `undefined` when all are up. */
  down(): string | undefined;
  /** Calls back after each reconnect of one link. */
  onReconnect(user: BrokerUser, callback: () => void): void;
  close(): Promise<void>;
}

const users: readonly BrokerUser[] = ["sys", "callout", "ctl", "app"];

/** Connects all four static users; all or none. */
export async function openLinks(servers: readonly string[], keys: KeyRing): Promise<Links> {
  const settled = await Promise.allSettled(
    users.map((user) =>
      connectAccount({
        servers,
        authenticator: keys.authenticator(user),
        name: `trellis-${user}`,
        // Clients that come back with the broker wait for the callout: it must be there first.
        ...(user === "callout" ? { reconnectTimeWait: 20 } : {}),
      }),
    ),
  );
  const opened = settled.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const failed = settled.find((result) => result.status === "rejected");
  const [sys, callout, ctl, app] = opened;
  if (
    failed !== undefined ||
    sys === undefined ||
    callout === undefined ||
    ctl === undefined ||
    app === undefined
  ) {
    await Promise.all(opened.map((nats) => nats.close()));
    throw new Error("The control plane could not connect to the broker.", { cause: failed?.reason });
  }
  return links({ sys, callout, ctl, app });
}

function links(connections: Readonly<Record<BrokerUser, NatsConnection>>): Links {
  const listeners = new Map<BrokerUser, (() => void)[]>();
  const broken = new Set<BrokerUser>();
  for (const user of users) {
    void follow(connections[user], {
      lost: () => broken.add(user),
      back: () => {
        broken.delete(user);
        for (const callback of listeners.get(user) ?? []) callback();
      },
    });
  }
  return {
    ...connections,
    down: () => [...broken][0],
    onReconnect: (user, callback) => {
      listeners.set(user, [...(listeners.get(user) ?? []), callback]);
    },
    close: async () => {
      await Promise.all(users.map((user) => connections[user].close()));
    },
  };
}

/** Ends with the connection. `back` can come more than once for one loss: the client repeats itself. */
async function follow(nats: NatsConnection, listener: { lost(): void; back(): void }): Promise<void> {
  for await (const status of nats.status()) {
    if (status.type === "disconnect") listener.lost();
    if (status.type === "reconnect") listener.back();
  }
}
