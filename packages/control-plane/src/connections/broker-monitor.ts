import type { NatsConnection } from "@nats-io/nats-core";
import { type ConnectionSocket, type Listing, readListing, readSocketEvent, type Socket } from "./events.ts";

const account = "APP";
const pageSize = 1024;
const gatherMs = 1000;

/** What the broker tells about sockets, and the one thing that can be done to them. */
export interface SocketListener {
  connected(socket: ConnectionSocket): void;
  disconnected(socket: ConnectionSocket, reason: string | undefined): void;
}

/** The system account's view of application connections: events, a full list, and the kick. */
export class BrokerMonitor {
  readonly #nats: NatsConnection;

  /** @param nats a connection of the system account's user. */
  constructor(nats: NatsConnection) {
    this.#nats = nats;
  }

  /** Follows sockets as they come and go. Events can be lost: {@link list} tells the truth after a gap. */
  follow(listener: SocketListener): () => void {
    const connected = this.#nats.subscribe(`$SYS.ACCOUNT.${account}.CONNECT`, {
      callback: (failure, message) => {
        const event = failure === null ? readSocketEvent(jsonOf(message)) : undefined;
        if (event !== undefined) listener.connected(event);
      },
    });
    const disconnected = this.#nats.subscribe(`$SYS.ACCOUNT.${account}.DISCONNECT`, {
      callback: (failure, message) => {
        const event = failure === null ? readSocketEvent(jsonOf(message)) : undefined;
        if (event !== undefined) listener.disconnected(event, event.reason);
      },
    });
    return () => {
      connected.unsubscribe();
      disconnected.unsubscribe();
    };
  }

  /** Every application socket: of the one server there is, or of all servers of a cluster that answer in time. */
  async list(): Promise<ConnectionSocket[]> {
    const sockets: ConnectionSocket[] = [];
    for (let offset = 0, more = true; more; offset += pageSize) {
      more = false;
      for (const page of await this.#page(offset)) {
        sockets.push(...page.sockets);
        if (offset + page.seen < page.total) more = true;
      }
    }
    return sockets;
  }

  async #page(offset: number): Promise<Listing[]> {
    const { info } = this.#nats;
    const query = JSON.stringify({ auth: true, acc: account, limit: pageSize, offset });
    if (info?.cluster === undefined) {
      const answer = await this.#nats.request(`$SYS.REQ.SERVER.${info?.server_id ?? "PING"}.CONNZ`, query, {
        timeout: 2000,
      });
      const page = readListing(jsonOf(answer));
      return page === undefined ? [] : [page];
    }
    const pages: Listing[] = [];
    const options = { strategy: "timer", maxWait: gatherMs } as const;
    for await (const answer of await this.#nats.requestMany("$SYS.REQ.SERVER.PING.CONNZ", query, options)) {
      const page = readListing(jsonOf(answer));
      if (page !== undefined) pages.push(page);
    }
    return pages;
  }

  /** Closes a socket. The client sees no reason and comes back through the callout: revoke first. */
  async kick(socket: Socket): Promise<void> {
    const body = JSON.stringify({ cid: socket.cid });
    await this.#nats.request(`$SYS.REQ.SERVER.${socket.serverId}.KICK`, body, { timeout: 2000 });
  }
}

function jsonOf(message: { json(): unknown }): unknown {
  try {
    return message.json();
  } catch {
    return undefined;
  }
}
