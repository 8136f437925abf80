import type { FacadeName } from "./facade-name.ts";

type Table = { readonly [Name in keyof typeof facadeNames]: FacadeName<Name & string> };

/**
 * One table for both sides: the compiler checks it against the types (each place must be exactly what `FacadeName`
 * says), the test beside it against the function and the conformance vectors.
 */
export const facadeNames = {
  "Orders.Create": { group: "orders", leaf: "create" },
  "Orders.Items.List": { group: "orders", leaf: "itemsList" },
  Ping: { group: "ping", leaf: "ping" },
  ping: { group: "ping", leaf: "ping" },
  "Evidence.Files.List": { group: "evidence", leaf: "filesList" },
  "Sites.Refresh": { group: "sites", leaf: "refresh" },
  "HTTP.Get": { group: "hTTP", leaf: "get" },
  "a.b.c.d": { group: "a", leaf: "bCD" },
  "A.B.C.D": { group: "a", leaf: "bCD" },
  "Order.Placed2.v3": { group: "order", leaf: "placed2V3" },
  "X.y9.Z": { group: "x", leaf: "y9Z" },
  "Billing.Invoices.Create": { group: "billing", leaf: "invoicesCreate" },
} as const;

facadeNames satisfies Table;

// @ts-expect-error - a wrong leaf is found
({ ...facadeNames, Ping: { group: "ping", leaf: "pong" } }) satisfies Table;
