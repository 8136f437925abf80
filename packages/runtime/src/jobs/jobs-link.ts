import type { Link } from "../connect/link.ts";
import type { RequestLink } from "../jetstream/broker-requests.ts";

/** What jobs need of a connection; a `Link` has it all. */
export type JobsLink = RequestLink &
  Pick<Link, "broker" | "listen" | "log"> & {
    readonly clock: Pick<Link["clock"], "now" | "monotonic">;
    readonly platform: Pick<Link["platform"], "port">;
  };
