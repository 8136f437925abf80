import type { AnyParticipant, EventAction } from "@trellis/contract";
import type { RpcClient } from "../rpc/rpc-client.ts";
import { askForListener } from "./ask-for-listener.ts";
import { EphemeralListeners, type EphemeralListenOptions } from "./ephemeral-listeners.ts";
import type { ConsumerLink } from "./event-consumer.ts";
import { eventFacade } from "./event-facade.ts";
import type { EventHandler } from "./event-handler.ts";
import { EventVerifier } from "./event-verifier.ts";

export interface HearingSurfaceOptions<Client> {
  readonly participant: AnyParticipant;
  readonly link: ConsumerLink;
  readonly rpc: RpcClient;
  readonly traced: boolean;
  /** What handlers are given. */
  client(): Client;
}

/** The events that an application listens to: ephemerally, since it declares no consumers. */
export class HearingSurface<Client> {
  readonly facade: object;
  readonly #listeners: EphemeralListeners;
  #verifier: EventVerifier | undefined;

  constructor({ participant, link, rpc, traced, client }: HearingSurfaceOptions<Client>) {
    const verifier = () => {
      this.#verifier ??= new EventVerifier(link);
      return this.#verifier;
    };
    this.#listeners = new EphemeralListeners({ link, traced, ask: askForListener(rpc), verifier });
    const used = Object.assign({}, ...participant.uses.map((use) => use.events)) as Record<
      string,
      EventAction
    >;
    this.facade = eventFacade(used, (action) => ({
      listen: (handler: EventHandler<unknown, Client>, options: EphemeralListenOptions) =>
        this.#listeners.listen(
          { action, handle: (event, context) => handler({ event, context, client: client() }) },
          options,
        ),
    }))(undefined);
  }

  /** Ends every listener. */
  stop(): void {
    this.#listeners.stop();
  }
}
