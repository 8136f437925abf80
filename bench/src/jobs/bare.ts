import { setImmediate as turn } from "node:timers/promises";
import { connect, headers, type Msg, type NatsConnection } from "@nats-io/transport-node";
import type { Payload, QueueName, System } from "./system.js";

const inbox = "_INBOX.bare";
const made = "Nats-Expected-Last-Subject-Sequence";
const madeOf = "Nats-Expected-Last-Subject-Sequence-Subject";

/**
 * No system, but the least that ours cannot do without, by hand on the same broker: one fenced write to make a job, one
 * delivery, one fenced write to end it, one acknowledgement. No contract, no validation, no retries, no history, no
 * leases. What ours reaches of it is what is left to gain.
 */
export async function bare(servers: string): Promise<System> {
  const broker = await BareBroker.open(servers);
  const encode = (payload: Payload) => new TextEncoder().encode(JSON.stringify(payload));
  let ids = 0;
  const create = (queue: QueueName, payload: Payload) => {
    const job = `bare.${queue}.${++ids}`;
    return broker.publish(`${job}.created`, { data: encode(payload), of: `${job}.*`, after: 0 });
  };
  return {
    create,
    createMany: (queue, payloads) => Promise.all(payloads.map((payload) => create(queue, payload))),
    work: (queue, _concurrency, handle) => broker.work(queue, handle),
    close: () => broker.close(),
  };
}

interface Write {
  readonly data: Uint8Array;
  /** Subjects whose last message must have the sequence `after`. */
  readonly of: string;
  readonly after: number;
}

/** One connection, with one subscription for all answers. */
class BareBroker {
  readonly #connection: NatsConnection;
  readonly #waiting = new Map<string, (answer: Msg) => void>();
  #calls = 0;

  static async open(servers: string): Promise<BareBroker> {
    const connection = await connect({ servers });
    const broker = new BareBroker(connection);
    await broker.#manage("STREAM.CREATE.BARE", { name: "BARE", subjects: ["bare.>"], storage: "file" });
    return broker;
  }

  private constructor(connection: NatsConnection) {
    this.#connection = connection;
    connection.subscribe(`${inbox}.*`, {
      callback: (_error, answer) => {
        const resolve = this.#waiting.get(answer.subject);
        this.#waiting.delete(answer.subject);
        resolve?.(answer);
      },
    });
  }

  publish(subject: string, { data, of, after }: Write): Promise<void> {
    const condition = headers();
    condition.set(made, String(after));
    condition.set(madeOf, of);
    const reply = `${inbox}.${++this.#calls}`;
    this.#connection.publish(subject, data, { reply, headers: condition });
    return new Promise((resolve, reject) => {
      this.#waiting.set(reply, (answer) => {
        const text = answer.string();
        if (text.includes('"error"')) reject(new Error(text));
        else resolve();
      });
    });
  }

  async work(queue: QueueName, handle: (payload: Payload) => void): Promise<() => Promise<unknown>> {
    const name: string = queue;
    await this.#manage(`CONSUMER.DURABLE.CREATE.BARE.${name}`, {
      stream_name: "BARE",
      config: {
        durable_name: name,
        filter_subject: `bare.${queue}.*.created`,
        ack_policy: "explicit",
        max_ack_pending: 1_000,
      },
    });
    const deliveries = `_INBOX.pull.${name}.${++this.#calls}`;
    const batch = 256;
    const pull = () =>
      this.#connection.publish(`$JS.API.CONSUMER.MSG.NEXT.BARE.${name}`, JSON.stringify({ batch }), {
        reply: deliveries,
      });
    let left = 2 * batch;
    let working = 0;
    const subscription = this.#connection.subscribe(deliveries, {
      callback: (_error, message) => {
        if (message.reply === undefined || message.reply === "") return;
        working += 1;
        if (--left === batch) {
          left += batch;
          pull();
        }
        handle(message.json<Payload>());
        void this.#settle(message, message.reply).then(() => {
          working -= 1;
        });
      },
    });
    pull();
    pull();
    return async () => {
      while (working > 0) await turn();
      subscription.unsubscribe();
    };
  }

  async #settle({ subject }: Msg, reply: string): Promise<void> {
    // $JS.ACK.<stream>.<consumer>.<deliveries>.<sequence in the stream>...
    const sequence = Number(reply.split(".")[5]);
    const job = subject.slice(0, subject.lastIndexOf("."));
    await this.publish(`${job}.completed`, { data: new Uint8Array(), of: `${job}.*`, after: sequence });
    this.#connection.publish(reply, "+ACK");
  }

  async #manage(action: string, request: object): Promise<void> {
    const { error } = (await this.#connection.request(`$JS.API.${action}`, JSON.stringify(request))).json<{
      error?: { description: string };
    }>();
    if (error !== undefined) throw new Error(error.description);
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }
}
