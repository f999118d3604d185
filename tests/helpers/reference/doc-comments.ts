/** The properties of one object literal in a formatted source, with the comments above them; null: none. */
export type CommentedLiteral = ReadonlyMap<string, string | null>;

const PROPERTY = /^([A-Za-z_]\w*)(?:,|:.*)$/;
const ONE_LINE = /^\/\*\* (.*) \*\/$/;

/** Finds object literals by the indentation of a formatted source. Literals of one line have no comments and are left out. */
export function commentedLiterals(source: string): CommentedLiteral[] {
  const literals: Map<string, string | null>[] = [];
  const open: { indent: number; literal: Map<string, string | null> }[] = [];
  let comment: string | null = null;
  for (const line of joinedComments(source).split('\n')) {
    const text = line.trim();
    if (text === '') continue;
    const indent = line.length - line.trimStart().length;
    while (open.length > 0 && (open.at(-1)?.indent ?? 0) > indent) open.pop();
    const found = ONE_LINE.exec(text);
    const [, name] = PROPERTY.exec(text) ?? [];
    if (name !== undefined) literalAt(indent).set(name, comment);
    comment = found?.[1] ?? null;
  }
  return literals;

  function literalAt(indent: number): Map<string, string | null> {
    const last = open.at(-1);
    if (last?.indent === indent) return last.literal;
    const literal = new Map<string, string | null>();
    open.push({ indent, literal });
    literals.push(literal);
    return literal;
  }
}

/** The comment of a property, from the largest literal that has it and nothing beside these properties. */
export function commentOf(property: string, properties: ReadonlySet<string>, literals: readonly CommentedLiteral[]): string | null {
  const fitting = literals.filter((literal) => literal.has(property) && [...literal.keys()].every((key) => properties.has(key)));
  const [largest] = fitting.sort((one, other) => other.size - one.size);
  return largest?.get(property) ?? null;
}

/** Comments of several lines as one line. */
function joinedComments(source: string): string {
  return source.replaceAll(/\/\*\*\n([\s\S]*?)\*\//g, (_, body: string) => `/** ${body.replaceAll(/\s*\n?\s*\* ?/g, ' ').trim()} */`);
}
