import { type Static, Type } from "typebox";
import { ParticipantField, TextField, TimeField, TokenField } from "../statements/fields.ts";
import { GrantsSchema } from "../statements/grants.ts";
import { SealedRouteKeySchema } from "../statements/sealed-route-key.ts";
import { SignedSchema } from "../statements/signed.ts";

// Answers are open: a control plane may say more than this version reads. What is trusted in them is signed.

/** The NATS servers, by the way to reach them; an empty list means that the listener is off. */
export const TransportsSchema = Type.Object({
  tcp: Type.Array(TextField),
  websocket: Type.Array(TextField),
});

export type Transports = Static<typeof TransportsSchema>;

/** Everything that a process needs to connect, and again at each refresh. */
export const BootstrapAnswerSchema = Type.Object({
  version: Type.Literal(1),
  connection: TokenField,
  serverTime: TimeField,
  /** `name` is the deployment's stable name, the same in all replicas. */
  assignment: Type.Object({ deployment: TokenField, instance: TokenField, name: TextField }),
  /** As installed. */
  participant: ParticipantField,
  authorization: SignedSchema,
  /** What the authorization names by digest. */
  grants: GrantsSchema,
  /** The list of issuers, signed by the root. */
  issuers: SignedSchema,
  transports: TransportsSchema,
  maxPayload: Type.Optional(Type.Integer({ minimum: 1 })),
  /** Signed API bindings: one for each used API that is bound. */
  bindings: Type.Array(SignedSchema),
  unbound: Type.Array(Type.Object({ api: TextField, reason: TextField })),
  /** The route keys of the deployment's own APIs, sealed: of the current epoch and the one before. */
  route: Type.Array(SealedRouteKeySchema),
  /** The physical resources behind the participant's aliases: a signed {@link ResourceBindings}. */
  resources: SignedSchema,
});

export type BootstrapAnswer = Static<typeof BootstrapAnswerSchema>;

/** What a control plane says to anybody: where to start. */
export const WellKnownSchema = Type.Object({
  version: Type.Literal(1),
  serverTime: TimeField,
  issuers: SignedSchema,
  transports: TransportsSchema,
  dev: Type.Boolean(),
});

export type WellKnown = Static<typeof WellKnownSchema>;
