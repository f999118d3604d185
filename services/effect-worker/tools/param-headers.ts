/** Names the header that carries a property of a tool's arguments, so that a gateway can route by it. */
const KEYWORD = 'x-mcp-header';
const PREFIX = 'Mcp-Param-';
/** RFC 9110, 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/;
/** Of a `number` the text is not unique. */
const TYPES = new Set<unknown>(['string', 'integer', 'boolean']);
/** Not in a header as it is: other than printable ASCII, space around it, or the form of an encoded value. */
const UNSAFE = /^$|^\s|\s$|[^\t\x20-\x7e]|^=\?base64\?.*\?=$/;
/** Their members are values, not schemas. */
const VALUE_KEYWORDS = new Set(['const', 'enum', 'default', 'examples', 'example']);

interface Param {
  header: string;
  path: readonly string[];
}

/** Headers of a call of a server of 2026-07-28, one per annotated property that the arguments hold. Values are encoded as the protocol says. */
export function paramHeadersOf(inputSchema: Record<string, unknown>, args: Record<string, unknown>): Record<string, string> {
  const { params, fault } = scanned(inputSchema);
  const headers: Record<string, string> = {};
  if (fault !== null) return headers;
  for (const { header, path } of params) {
    const text = textOf(valueAt(args, path));
    if (text !== null) headers[`${PREFIX}${header}`] = UNSAFE.test(text) ? `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=` : text;
  }
  return headers;
}

/** Why a server of 2026-07-28 would refuse calls of a tool for its annotations; null when it would not. */
export function paramFaultOf(inputSchema: Record<string, unknown>): string | null {
  return scanned(inputSchema).fault;
}

/** @param inputSchema its depth has been checked: this recurses */
function scanned(inputSchema: Record<string, unknown>): { params: Param[]; fault: string | null } {
  const params: Param[] = [];
  const names = new Set<string>();
  /** @param path null below anything but `properties` */
  const visit = (node: unknown, path: readonly string[] | null): string | null => {
    if (typeof node !== 'object' || node === null) return null;
    const header: unknown = Reflect.get(node, KEYWORD);
    if (header !== undefined && !Array.isArray(node)) {
      if (path === null || path.length === 0) return `${KEYWORD} stands at something else than a property`;
      if (typeof header !== 'string' || !TOKEN.test(header)) return `${KEYWORD} is no name of a header`;
      if (!TYPES.has(Reflect.get(node, 'type'))) return `${KEYWORD} ${JSON.stringify(header)} stands at a property that is no string, integer or boolean`;
      if (names.has(header.toLowerCase())) return `${KEYWORD} ${JSON.stringify(header)} is given twice`;
      names.add(header.toLowerCase());
      params.push({ header, path });
    }
    for (const [key, inner] of Object.entries(node)) {
      if (VALUE_KEYWORDS.has(key)) continue;
      const isNamed = key === 'properties' && path !== null && typeof inner === 'object' && inner !== null;
      const fault = isNamed ? firstOf(Object.entries(inner), ([name, schema]) => visit(schema, [...path, name])) : visit(inner, null);
      if (fault !== null) return fault;
    }
    return null;
  };
  return { fault: visit(inputSchema, []), params };
}

function firstOf<Item>(items: readonly Item[], faultOf: (item: Item) => string | null): string | null {
  for (const item of items) {
    const fault = faultOf(item);
    if (fault !== null) return fault;
  }
  return null;
}

function valueAt(args: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined),
    args,
  );
}

function textOf(value: unknown): string | null {
  if (typeof value === 'string') return value;
  return typeof value === 'boolean' || Number.isSafeInteger(value) ? String(value) : null;
}
