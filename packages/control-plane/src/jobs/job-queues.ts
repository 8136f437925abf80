import { type ConsumerInfo, type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import type { JobsBinding } from "@trellis/protocol/jobs";
import type { JobsResource } from "./job-resources.ts";

/** A queue as the broker sees it. */
export interface QueueDepth {
  readonly paused: boolean;
  readonly waiting: number;
  readonly running: number;
}

/** So far that it is for ever. */
const forever = new Date(Date.UTC(9000, 0, 1));

/** Depth, pause and resume of queues: all of it is kept by the broker, in the queue's consumers. */
export class JobQueues {
  readonly #nats: NatsConnection;

  constructor(nats: NatsConnection) {
    this.#nats = nats;
  }

  async depth(resource: JobsResource, queue: string): Promise<QueueDepth> {
    const manager = await this.#manager();
    const infos = await Promise.all(
      consumersOf(resource.binding, queue).map((name) => manager.consumers.info(resource.stream, name)),
    );
    const sum = (count: (info: ConsumerInfo) => number) =>
      infos.reduce((total, info) => total + count(info), 0);
    return {
      paused: infos.some(({ paused }) => paused === true),
      waiting: sum(({ num_pending }) => num_pending),
      running: sum(({ num_ack_pending }) => num_ack_pending),
    };
  }

  /** What has begun comes to its end; nothing new is given out. */
  async pause(resource: JobsResource, queue: string): Promise<void> {
    const manager = await this.#manager();
    for (const name of consumersOf(resource.binding, queue))
      await manager.consumers.pause(resource.stream, name, forever);
  }

  async resume(resource: JobsResource, queue: string): Promise<void> {
    const manager = await this.#manager();
    for (const name of consumersOf(resource.binding, queue))
      await manager.consumers.resume(resource.stream, name);
  }

  #manager(): Promise<JetStreamManager> {
    return jetstreamManager(this.#nats, { checkAPI: false });
  }
}

function consumersOf(binding: JobsBinding, queue: string): string[] {
  const work = Object.hasOwn(binding.queues, queue) ? binding.queues[queue]?.work : undefined;
  return work === undefined ? [] : Object.values(work);
}
