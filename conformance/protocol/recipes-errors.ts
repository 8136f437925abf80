import { defineError } from "@trellis/contract";
import {
  AuthError,
  BusyError,
  CancelledError,
  ConflictError,
  decodeError,
  encodeError,
  JobNotEnqueuedError,
  NotFoundError,
  RemoteError,
  TimeoutError,
  TransportError,
  UnavailableError,
  ValidationError,
} from "@trellis/protocol";
import { UnexpectedError } from "@trellis/result";
import { Type } from "typebox";
import { type Recipes, recipe } from "./recipe.ts";

const OutOfStock = defineError("OutOfStock", { data: Type.Object({ sku: Type.String() }) });
const Closed = defineError("Closed");

/** The classes by name, each made from the options that a vector holds. */
const MAKERS = {
  ValidationError: (options: ConstructorParameters<typeof ValidationError>[0]) =>
    new ValidationError(options),
  AuthError: (options: ConstructorParameters<typeof AuthError>[0]) => new AuthError(options),
  TransportError: (options: ConstructorParameters<typeof TransportError>[0]) => new TransportError(options),
  TimeoutError: (options: ConstructorParameters<typeof TimeoutError>[0]) => new TimeoutError(options),
  CancelledError: (options: ConstructorParameters<typeof CancelledError>[0]) => new CancelledError(options),
  BusyError: (options: ConstructorParameters<typeof BusyError>[0]) => new BusyError(options),
  UnavailableError: (options: ConstructorParameters<typeof UnavailableError>[0]) =>
    new UnavailableError(options),
  JobNotEnqueuedError: (options: ConstructorParameters<typeof JobNotEnqueuedError>[0]) =>
    new JobNotEnqueuedError(options),
  NotFoundError: (options: ConstructorParameters<typeof NotFoundError>[0]) => new NotFoundError(options),
  ConflictError: (options: ConstructorParameters<typeof ConflictError>[0]) => new ConflictError(options),
  RemoteError: (options: ConstructorParameters<typeof RemoteError>[0]) => new RemoteError(options),
  UnexpectedError: (options: ConstructorParameters<typeof UnexpectedError>[0]) =>
    new UnexpectedError(options),
  OutOfStock: (options: ConstructorParameters<typeof OutOfStock>[0]) => new OutOfStock(options),
  Closed: (options: ConstructorParameters<typeof Closed>[0]) => new Closed(options),
} as const;

export const errorRecipes: Recipes = {
  encodeError: recipe((_port, input: { type: keyof typeof MAKERS; options: never }) =>
    encodeError(MAKERS[input.type](input.options)),
  ),
  decodeError: recipe((_port, input: { envelope: unknown }) => {
    const error = decodeError(input.envelope, { OutOfStock, Closed });
    // An envelope without an id of its own gets a random one.
    const { id, ...rest } = error.toSerializable();
    return { ...rest, ...(id.startsWith("fixed-") && { id }) };
  }),
};
