import { type EventAction, facadeName } from "@trellis/contract";

/** Makes what stands for an event on a facade. */
export type MakeLeaf<Origin> = (action: EventAction, origin: Origin) => unknown;

/** `{ [group]: { [leaf]: ... } }` over events by dotted name. Leaves are made when they are touched. */
export function eventFacade<Origin>(
  actions: Readonly<Record<string, EventAction>>,
  make: MakeLeaf<Origin>,
): (origin: Origin) => object {
  const groups = new Map<string, [string, EventAction][]>();
  for (const [name, action] of Object.entries(actions)) {
    const { group, leaf } = facadeName(name);
    groups.set(group, [...(groups.get(group) ?? []), [leaf, action]]);
  }
  return (origin) => {
    const facade = {};
    for (const [group, leaves] of groups) define(facade, group, () => groupOf(leaves, make, origin));
    return facade;
  };
}

function groupOf<Origin>(
  leaves: readonly [string, EventAction][],
  make: MakeLeaf<Origin>,
  origin: Origin,
): object {
  const group = {};
  for (const [leaf, action] of leaves) define(group, leaf, () => make(action, origin));
  return group;
}

function define(target: object, name: string, get: () => unknown): void {
  Object.defineProperty(target, name, { enumerable: true, get });
}
