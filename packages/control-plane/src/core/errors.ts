import { defineError } from "@trellis/contract";
import { Type } from "typebox";

/** What was named does not exist. */
export const NotKnown = defineError("NotKnown", {
  data: Type.Object({ kind: Type.String(), id: Type.String() }),
  message: ({ kind, id }) => `There is no ${kind} "${id}".`,
});
/** The contract that was sent cannot be installed. */
export const ArtifactInvalid = defineError("ArtifactInvalid", {
  data: Type.Object({ problem: Type.String() }),
  message: ({ problem }) => problem,
});
/** A deployment of that name exists, or the name is not one. */
export const NameRefused = defineError("NameRefused", {
  data: Type.Object({
    name: Type.String(),
    problem: Type.Union([Type.Literal("name_taken"), Type.Literal("name_illegal")]),
  }),
  message: ({ name, problem }) =>
    problem === "name_taken"
      ? `A deployment is called "${name}" already.`
      : `"${name}" is not a deployment's name.`,
});
/** The identity key is not a key, or belongs to an instance already. */
export const IdentityRefused = defineError("IdentityRefused", {
  data: Type.Object({
    problem: Type.Union([Type.Literal("identity_taken"), Type.Literal("identity_malformed")]),
  }),
});
/** The cursor is not one that a list of this kind gave. */
export const CursorInvalid = defineError("CursorInvalid");

/** It belongs to the platform itself, which could not go on without it. */
export const PlatformOwned = defineError("PlatformOwned", {
  data: Type.Object({ id: Type.String() }),
  message: ({ id }) => `"${id}" belongs to the platform and cannot be changed so.`,
});
/** The deployment's contract does not use the API, or the provider's does not implement it. */
export const BindingRefused = defineError("BindingRefused", {
  data: Type.Object({
    api: Type.String(),
    deployment: Type.String(),
    problem: Type.Union([Type.Literal("not_used"), Type.Literal("not_provided")]),
  }),
  message: ({ api, deployment, problem }) =>
    problem === "not_used"
      ? `"${deployment}" does not use ${api}.`
      : `"${deployment}" does not provide ${api}.`,
});
/** Somebody else changed it meanwhile. */
export const RevisionStale = defineError("RevisionStale", {
  data: Type.Object({ revision: Type.Integer() }),
  message: ({ revision }) => `It was changed meanwhile and has revision ${revision} now.`,
});
