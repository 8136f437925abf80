import { type Static, Type } from "typebox";
import { ApiField, CLOSED, EpochField, KeyField, KeyIdField, TimeField, TokenField } from "./fields.ts";

/** The route of the epoch before, while a planned roll overlaps. */
const Previous = Type.Union([
  Type.Object({ epoch: EpochField, routeKey: KeyField, until: TimeField }, CLOSED),
  Type.Null(),
]);

/** Which deployment provides an API to a consumer, and the key of its route. */
export const ApiBindingSchema = Type.Object(
  {
    version: Type.Literal(1),
    issuer: KeyIdField,
    /** The deployment that uses the API. */
    consumer: TokenField,
    api: ApiField,
    /** The deployment that provides it. */
    deployment: TokenField,
    epoch: EpochField,
    routeKey: KeyField,
    previous: Previous,
    issuedAt: TimeField,
    expiresAt: TimeField,
  },
  CLOSED,
);

export type ApiBinding = Static<typeof ApiBindingSchema>;

/** The binding as a kind of statement. */
export const API_BINDING = { label: "trellis.binding.v1", schema: ApiBindingSchema } as const;

/** That a deployment's route has a new epoch and key: callers take it up without a refresh. */
export const RouteNoticeSchema = Type.Object(
  {
    version: Type.Literal(1),
    issuer: KeyIdField,
    deployment: TokenField,
    epoch: EpochField,
    routeKey: KeyField,
    previous: Previous,
    issuedAt: TimeField,
  },
  CLOSED,
);

export type RouteNotice = Static<typeof RouteNoticeSchema>;

/** The route notice as a kind of statement. */
export const ROUTE_NOTICE = { label: "trellis.route.v1", schema: RouteNoticeSchema } as const;
