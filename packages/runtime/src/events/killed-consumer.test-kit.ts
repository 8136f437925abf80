// A replica in a process of its own, to be killed in its handler: `<server> <alias> <binding as JSON>`.
import { connect } from "@nats-io/transport-node";
import type { ConsumerBinding } from "@trellis/protocol";
import { createConnectionKeys } from "../connect/connection-keys.ts";
import { nodePort } from "../platform/node/port.ts";
import type { EventListenFacade } from "./event-listeners.ts";
import { authorize, type Billing, EventLink, listening, type Outer } from "./events.test-kit.ts";

const [servers = "", alias = "one", bindingText = "{}"] = process.argv.slice(2);
const keys = createConnectionKeys(nodePort, undefined).orThrow();
const link = new EventLink(await connect({ servers }), {
  keys,
  session: authorize(new Map(), { deployment: "billing1", keys }),
});
const surface = listening(link, { [alias]: JSON.parse(bindingText) as ConsumerBinding }, false);
const facade = surface.facade as EventListenFacade<Billing, Outer>;
facade.order.placed.listen(
  ({ event }) => {
    process.stdout.write(`handling ${event.id}\n`);
    return new Promise(() => {});
  },
  { group: alias as "one" },
);
surface.start();
process.stdout.write("ready\n");
