import type { AnyParticipant } from "@trellis/contract";
import type { TransportError } from "@trellis/protocol";
import { AsyncResult, UnexpectedError } from "@trellis/result";
import {
  type ConnectArgs,
  type ConnectDeps,
  type ConnectedLink,
  connectLink,
} from "../connect/connect-link.ts";
import type { ConnectedService } from "./connected-service.ts";
import { RunningService } from "./running-service.ts";

/** Connects services: participants that implement APIs. */
export const TrellisService = {
  /**
   * Connects a service. Address, identity and development token come from the arguments, else from
   * TRELLIS_URL, TRELLIS_SEED and TRELLIS_DEV_TOKEN, else from the `.trellis/dev.json` of a running
   * `trellis dev`. Nothing is served before `start()` or `wait()`.
   */
  connect<P extends AnyParticipant>(
    args: ConnectArgs<P>,
  ): AsyncResult<ConnectedService<P>, TransportError | UnexpectedError> {
    return connectServiceWith(args, {});
  },
};

/** Connects a service with replaced parts: for the control plane's own APIs and for tests. */
export function connectServiceWith<P extends AnyParticipant>(
  args: ConnectArgs<P>,
  deps: ConnectDeps,
): AsyncResult<ConnectedService<P>, TransportError | UnexpectedError> {
  return connectLink(args, "service", deps).andThen((connected) => open(args.participant, connected));
}

function open<P extends AnyParticipant>(
  participant: P,
  connected: ConnectedLink,
): AsyncResult<ConnectedService<P>, UnexpectedError> {
  return AsyncResult.try(
    () => RunningService.open(participant, connected),
    (thrown) => {
      void connected.link.close();
      return UnexpectedError.from(thrown);
    },
  );
}
