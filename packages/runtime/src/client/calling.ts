import type { AnyParticipant, FeedRecord, RpcAction, RpcRecord } from "@trellis/contract";
import { NotFoundError, type TrellisError } from "@trellis/protocol";
import { AsyncResult } from "@trellis/result";
import type { Link } from "../connect/link.ts";
import { FeedClient } from "../feeds/feed-client.ts";
import type { CallOrigin } from "../rpc/call-origin.ts";
import type { CallOptions } from "../rpc/rpc-caller.ts";
import type { CallRequest, RpcClient } from "../rpc/rpc-client.ts";
import { callFacade, type FacadeFactory, type MakeCall } from "../rpc/rpc-facade.ts";
import { stateFacade } from "../state/state-facade.ts";
import { withClientSpan } from "../telemetry/rpc-spans.ts";
import { type ClientMiddleware, withClientMiddleware } from "./middleware.ts";

/** Calls by name, for tools and for code that does not know the contract when it is compiled. */
export interface RequestByName {
  (name: string, input?: unknown, options?: CallOptions): AsyncResult<unknown, TrellisError>;
}

/** Everything that calls others, for one participant: shared by its outer client and the clients of handlers. */
export class Calling {
  readonly #rpc: RpcClient;
  readonly #used: RpcRecord;
  readonly #traced: boolean;
  readonly #facade: FacadeFactory;
  readonly #feeds: FacadeFactory;
  readonly #state: FacadeFactory;
  readonly #chain: ClientMiddleware[] = [];
  #make: MakeCall;

  constructor(input: { participant: AnyParticipant; link: Link; rpc: RpcClient; traced: boolean }) {
    this.#rpc = input.rpc;
    this.#traced = input.traced;
    this.#used = usedRpc(input.participant);
    this.#make = this.#compose();
    this.#facade = callFacade(this.#used, (request: CallRequest) => this.#make(request));
    this.#state = stateFacade({
      resources: input.participant.state,
      port: input.link.platform.port,
      call: (request) => this.#make(request),
    });
    const feeds = new FeedClient(input.link, input.rpc, input);
    this.#feeds = callFacade(usedFeeds(input.participant), (request) => feeds.feed(request));
  }

  use(middleware: ClientMiddleware): void {
    this.#chain.push(middleware);
    this.#make = this.#compose();
  }

  /** The facade of one origin. */
  facade(origin: CallOrigin | undefined): object {
    return this.#facade(origin);
  }

  /** The feeds that can be opened, for one origin. */
  feeds(origin: CallOrigin | undefined): object {
    return this.#feeds(origin);
  }

  /** The declared state, for one origin. */
  state(origin: CallOrigin | undefined): object {
    return this.#state(origin);
  }

  request(origin: CallOrigin | undefined): RequestByName {
    return (name, input, options) => {
      const action = this.#find(name);
      if (action !== undefined) return this.#make({ action, input, options, origin });
      const known = Object.keys(this.#used).join(", ");
      return AsyncResult.err(
        new NotFoundError({ message: `This participant uses no RPC "${name}". It uses: ${known}.` }),
      );
    };
  }

  #find(name: string): RpcAction | undefined {
    return Object.hasOwn(this.#used, name) ? this.#used[name] : undefined;
  }

  #compose(): MakeCall {
    const bare: MakeCall = (request) => this.#rpc.call(request);
    const traced: MakeCall = this.#traced ? (request) => withClientSpan(request, bare) : bare;
    return withClientMiddleware(this.#chain, traced);
  }
}

/** The actions that a participant calls, by the dotted name from which their facade is made. */
function usedRpc(participant: AnyParticipant): RpcRecord {
  return Object.assign({}, ...participant.uses.map((used) => used.rpc));
}

function usedFeeds(participant: AnyParticipant): FeedRecord {
  return Object.assign({}, ...participant.uses.map((used) => used.feeds));
}
