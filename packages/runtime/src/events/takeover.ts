import type { ServerClock } from "../connect/server-clock.ts";
import type { BrokerRequests } from "../jetstream/broker-requests.ts";
import { unsettledOf } from "../jetstream/consumer-info.ts";
import type { PullLoop } from "../jetstream/pull-loop.ts";
import type { PulledMessage } from "../jetstream/pulled-message.ts";
import { sleep } from "../lifecycle/backoff.ts";
import type { Logger } from "../logging/logger.ts";
import type { BoundConsumer } from "./consumer-binding.ts";

export interface TakeoverOptions {
  readonly loop: Pick<PullLoop, "held" | "prefetch">;
  readonly requests: BrokerRequests;
  readonly binding: BoundConsumer;
  readonly log: Logger;
  readonly clock: Pick<ServerClock, "monotonic">;
  /** Gets everything that came meanwhile, in the order of the stream. */
  onDone(messages: readonly PulledMessage[]): void;
}

const lookMs = 100;
/** The server looks for overdue messages about once a second. */
const graceMs = 2_500;

/**
 * The time between being handed the events of an ordered consumer and handling them. The replica that had them before
 * may have died with some: those come again only when their time to be settled is over, after newer ones. Until
 * nothing is unsettled but what is here, everything is kept back, and then sorted.
 */
export class Takeover {
  readonly #options: TakeoverOptions;
  #messages: PulledMessage[] = [];
  #ended = false;

  constructor(options: TakeoverOptions) {
    this.#options = options;
    void this.#wait();
  }

  add(message: PulledMessage): void {
    this.#messages.push(message);
  }

  /** Ends it early; what it held back is the caller's. */
  end(): readonly PulledMessage[] {
    this.#ended = true;
    return this.#messages.splice(0).sort((a, b) => a.facts.sequence - b.facts.sequence);
  }

  async #wait(): Promise<void> {
    const { loop, binding, clock, log } = this.#options;
    const until = clock.monotonic() + binding.ackWaitMs + graceMs;
    while (!this.#ended) {
      const orphans = await this.#orphans();
      if (this.#ended) return;
      if (orphans === 0) return this.#options.onDone(this.end());
      if (clock.monotonic() >= until) {
        log.warn(
          { consumer: binding.consumer, orphans },
          "Events of another replica did not come back in time",
        );
        return this.#options.onDone(this.end());
      }
      // A full replica would ask for nothing, and so never get them.
      if (loop.held + orphans > loop.prefetch) loop.prefetch = loop.held + orphans;
      await sleep(lookMs, { background: true });
    }
  }

  /** Events that are with somebody else, or on their way to us; some number above zero when nobody can tell. */
  async #orphans(): Promise<number> {
    const { requests, binding, loop } = this.#options;
    try {
      return Math.max(0, (await unsettledOf(requests, binding.stream, binding.consumer)) - loop.held);
    } catch {
      return 1;
    }
  }
}
