/** Where a dotted action name appears on a facade: `client.rpc.<group>.<leaf>`. */
export interface FacadePlace {
  readonly group: string;
  readonly leaf: string;
}

type Camel<Rest extends string> = Rest extends `${infer Head}.${infer Tail}`
  ? `${Capitalize<Head>}${Camel<Tail>}`
  : Capitalize<Rest>;

/** Group of a dotted name: `"Orders.Items.List"` gives `"orders"`. */
export type GroupOf<Name extends string> = Name extends `${infer Head}.${string}`
  ? Uncapitalize<Head>
  : Uncapitalize<Name>;

/** Leaf of a dotted name: `"Orders.Items.List"` gives `"itemsList"`; a name without a dot is its own leaf. */
export type LeafOf<Name extends string> = Name extends `${string}.${infer Rest}`
  ? Uncapitalize<Camel<Rest>>
  : Uncapitalize<Name>;

/** The type-level twin of {@link facadeName}. */
export interface FacadeName<Name extends string> {
  readonly group: GroupOf<Name>;
  readonly leaf: LeafOf<Name>;
}

/** Group and leaf of a dotted action name. The one function from which runtime facades get their names. */
export function facadeName<const Name extends string>(name: Name): FacadeName<Name>;
export function facadeName(name: string): FacadePlace {
  const [group = "", ...rest] = name.split(".");
  const leaf = rest.length === 0 ? group : rest.map(capitalize).join("");
  return { group: uncapitalize(group), leaf: uncapitalize(leaf) };
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function uncapitalize(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
