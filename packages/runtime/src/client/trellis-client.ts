import type { AnyParticipant } from "@trellis/contract";
import type { TransportError } from "@trellis/protocol";
import type { AsyncResult, UnexpectedError } from "@trellis/result";
import { type ConnectArgs, type ConnectDeps, connectLink } from "../connect/connect-link.ts";
import type { Connection } from "../connect/connection-status.ts";
import type { EventHearFacade } from "../events/event-listeners.ts";
import { HearingSurface } from "../events/hearing-surface.ts";
import type { FeedOpenFacade } from "../feeds/feed-facade.ts";
import { RpcClient } from "../rpc/rpc-client.ts";
import type { RpcCallFacade } from "../rpc/rpc-facade.ts";
import type { StateFacade } from "../state/state.ts";
import { Calling, type RequestByName } from "./calling.ts";
import type { ClientMiddleware } from "./middleware.ts";

/** A connected client: it calls what its participant uses. */
export type ConnectedClient<P extends AnyParticipant> = AsyncDisposable & {
  readonly connection: Connection;
  /** The RPCs that the participant uses: `client.rpc.<group>.<leaf>(input, options)`. */
  readonly rpc: RpcCallFacade<P>;
  /** The feeds that the participant uses: `for await (const item of client.feed.<group>.<leaf>(input, { signal }))`. */
  readonly feed: FeedOpenFacade<P>;
  /** The declared state of whoever is connected, by alias. */
  readonly state: StateFacade<P>;
  /** The events that the participant uses: `listen(handler, { mode: "ephemeral" })`. */
  readonly event: EventHearFacade<P, ConnectedClient<P>>;
  /** Ends every listener that was begun by `event`. */
  stopEventListeners(): void;
  /** Calls an RPC by its dotted name; input and output are unknown to the compiler. */
  readonly request: RequestByName;
  /** Puts middleware around every call made from now on; the first one is outermost. */
  use(middleware: ClientMiddleware): void;
  /** Closes the connection; calls under way end with a `CancelledError`. Idempotent. */
  close(): Promise<void>;
} & {};

/** Connects applications and back-end processes that only call others. */
export const TrellisClient = {
  /**
   * Connects. Address, identity and development token come from the arguments, else from TRELLIS_URL,
   * TRELLIS_SEED and TRELLIS_DEV_TOKEN, else from the `.trellis/dev.json` of a running `trellis dev`.
   */
  connect<P extends AnyParticipant>(
    args: ConnectArgs<P>,
  ): AsyncResult<ConnectedClient<P>, TransportError | UnexpectedError> {
    return connectClientWith(args, {});
  },
};

/** Connects a client with replaced parts: for tests. */
export function connectClientWith<P extends AnyParticipant>(
  args: ConnectArgs<P>,
  deps: ConnectDeps,
): AsyncResult<ConnectedClient<P>, TransportError | UnexpectedError> {
  return connectLink(args, "client", deps).map(({ link, settings }): ConnectedClient<P> => {
    const rpc = new RpcClient(link, settings);
    const calling = new Calling({ participant: args.participant, link, rpc, traced: settings.traced });
    const hearing = new HearingSurface<ConnectedClient<P>>({
      participant: args.participant,
      link,
      rpc,
      traced: settings.traced,
      client: () => client,
    });
    const client: ConnectedClient<P> = {
      connection: link,
      // The facades are built from the same contract that their types are computed from.
      rpc: calling.facade(undefined) as RpcCallFacade<P>,
      feed: calling.feeds(undefined) as FeedOpenFacade<P>,
      state: calling.state(undefined) as StateFacade<P>,
      event: hearing.facade as ConnectedClient<P>["event"],
      stopEventListeners: () => hearing.stop(),
      request: calling.request(undefined),
      use: (middleware) => calling.use(middleware),
      close: () => link.close(),
      [Symbol.asyncDispose]: () => link.close(),
    };
    return client;
  });
}
