import { readFile, stat } from 'node:fs/promises';
import {
  type Document,
  type DocumentOptions,
  type ErrorCode,
  isAlias,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type ParseOptions,
  parseDocument,
  type SchemaOptions,
} from 'yaml';
import { type Problem, sentenceOf } from './problems.ts';

/** Parsing this much takes 1–3 s of CPU, some 10 s where nearly each character is an error; only at the start, since no request reads a file. */
const MAX_FILE_BYTES = 1_048_576;
/** Shallow enough for recursive functions. */
const MAX_DEPTH = 64;
/** Resolved YAML aliases: a few lines of them can expand to gigabytes. */
const MAX_ALIASES = 100;
/** Anchors and aliases in one file: each alias is searched among all of them. */
const MAX_ANCHORS = 1_000;
/** Values of a document, aliases expanded: twice what the largest file can hold without aliases. */
const MAX_VALUES = 1_048_576;
/** Later syntax errors mostly follow from the first: they are only counted. */
const MAX_SYNTAX_ERRORS = 5;

/** Plain JSON, or at least one error line without the file's name. */
export type FileRead = { value: unknown; problems: [] } | { value: null; problems: [string, ...string[]] };

/**
 * Reads one YAML or JSON file with one parser, as JSON is a subset of YAML 1.2; repeated keys are refused in both. Errors name the line
 * and never quote the text, which may be a misplaced secret.
 */
export async function readDocumentFile(path: string): Promise<FileRead> {
  const text = await readText(path);
  if (typeof text !== 'string') return refused(text.problem);
  const lines = new LineCounter();
  const document = parseDocument(text, { ...OPTIONS, lineCounter: lines });
  const walk = walkNodes(document);
  // The parser only warns of an unknown tag, and would misread its value.
  const [first, ...more] = listed([...document.errors.map(syntaxFaultOf), ...document.warnings.map(syntaxFaultOf), ...walk.repeatedKeys], lines);
  if (first !== undefined) return refused(first, ...more);
  if (walk.anchors > MAX_ANCHORS) return refused(`the document has more than ${MAX_ANCHORS} anchors and aliases`);
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch {
    return refused(`an alias refers to no anchor before it, or aliases expand to more than ${MAX_ALIASES} values`);
  }
  const fault = faultOf(value, { valuesLeft: MAX_VALUES });
  return fault === null ? { value, problems: [] } : refused(sentenceOf(fault));
}

/** Values without a JSON form; reading `omap` is quadratic. `%YAML 1.1` enables these tags too. */
const UNSUPPORTED_TAGS = /:(?:omap|pairs|set|binary|timestamp)$/;

/** `uniqueKeys` is off because it is quadratic; `addRepeats` finds repeated keys in linear time. */
const OPTIONS: ParseOptions & DocumentOptions & SchemaOptions = {
  prettyErrors: false,
  stringKeys: true,
  uniqueKeys: false,
  resolveKnownTags: false,
  customTags: (tags) => tags.filter((tag) => typeof tag === 'string' || !UNSUPPORTED_TAGS.test(tag.tag)),
  logLevel: 'error',
};

interface SyntaxFault {
  /** Character offset. */
  offset: number;
  sentence: string;
}

function syntaxFaultOf({ pos, code }: { pos: [number, number]; code: ErrorCode }): SyntaxFault {
  return { offset: pos[0], sentence: SENTENCES[code] };
}

function listed(faults: readonly SyntaxFault[], lines: LineCounter): string[] {
  const sorted = [...faults].sort((left, right) => left.offset - right.offset);
  const shown = sorted.slice(0, MAX_SYNTAX_ERRORS).map(({ offset, sentence }) => {
    const { line, col } = lines.linePos(offset);
    return `line ${line}, column ${col}: ${sentence}`;
  });
  const rest = sorted.length - shown.length;
  return rest === 0 ? shown : [...shown, `… and ${rest} more`];
}

/** Visits each node once, without recursion and without following aliases. */
function walkNodes(document: Document): { repeatedKeys: SyntaxFault[]; anchors: number } {
  const repeatedKeys: SyntaxFault[] = [];
  let anchors = 0;
  const open: unknown[] = [document.contents];
  while (open.length > 0) {
    const node = open.pop();
    if (isPair(node)) open.push(node.value, node.key);
    if (!isNode(node)) continue;
    if (isAlias(node) || node.anchor !== undefined) anchors += 1;
    if (isMap(node)) addRepeats(node.items, repeatedKeys);
    if (isMap(node) || isSeq(node)) for (const item of node.items) open.push(item);
  }
  return { repeatedKeys, anchors };
}

function addRepeats(items: readonly { key: unknown }[], repeats: SyntaxFault[]): void {
  const seen = new Set<unknown>();
  for (const { key } of items) {
    if (!isScalar(key)) continue;
    if (seen.has(key.value)) repeats.push({ offset: key.range?.[0] ?? 0, sentence: SENTENCES.DUPLICATE_KEY });
    seen.add(key.value);
  }
}

function refused(...problems: [string, ...string[]]): FileRead {
  return { value: null, problems };
}

async function readText(path: string): Promise<string | { problem: string }> {
  let bytes: Buffer;
  try {
    const found = await stat(path);
    // Opening a pipe would block until another process writes to it.
    if (!found.isFile()) return { problem: 'this is not a regular file' };
    if (found.size > MAX_FILE_BYTES) return { problem: `the file is larger than ${MAX_FILE_BYTES / 1_048_576} MiB` };
    bytes = await readFile(path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    return { problem: error.code === 'ENOENT' ? 'the file does not exist' : `the file can't be read (${String(error.code)})` };
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return { problem: 'the file is not UTF-8 text' };
  }
}

/** Refuses what JSON can't express: infinity, bytes, dates, sets, cyclic values. The path is that of a value that is at fault by itself. */
function faultOf(value: unknown, walk: { valuesLeft: number }, path: PropertyKey[] = []): Problem | null {
  walk.valuesLeft -= 1;
  if (walk.valuesLeft < 0) return { path: [], expected: `aliases expand to more than ${MAX_VALUES} values` };
  if (path.length > MAX_DEPTH) return { path: [], expected: `the document is nested deeper than ${MAX_DEPTH} levels` };
  if (value === null || typeof value === 'string' || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))) return null;
  const isList = Array.isArray(value);
  if (!isList && (typeof value !== 'object' || Object.getPrototypeOf(value) !== Object.prototype)) {
    return { path: [...path], expected: 'is a value that JSON cannot represent, such as 1e999, .inf, .nan, !!binary or !!set' };
  }
  for (const [key, inner] of isList ? value.entries() : Object.entries(value)) {
    path.push(key);
    const fault = faultOf(inner, walk, path);
    if (fault !== null) return fault;
    path.pop();
  }
  return null;
}

/** Replaces the parser's own messages, which quote the text. */
const SENTENCES: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: 'an alias can have no anchor or tag',
  BAD_ALIAS: 'the name of an alias or anchor is not valid',
  BAD_COLLECTION_TYPE: 'a tag does not match its collection',
  BAD_DIRECTIVE: 'a % directive is not valid',
  BAD_DQ_ESCAPE: 'an escape in a quoted string is not valid',
  BAD_INDENT: 'the indentation is wrong, or a bracket is not closed',
  BAD_PROP_ORDER: 'an anchor or tag is in the wrong place',
  BAD_SCALAR_START: 'a string cannot begin with this character; put it in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a mapping cannot begin here; a string with a colon needs quotes',
  BLOCK_IN_FLOW: 'a block is not allowed inside brackets',
  DUPLICATE_KEY: 'this key is repeated',
  IMPOSSIBLE: 'this could not be parsed',
  KEY_OVER_1024_CHARS: 'a key is longer than 1024 characters',
  MISSING_CHAR: 'a quote, bracket, comma, colon or space is missing',
  MULTILINE_IMPLICIT_KEY: 'a key must be on one line',
  MULTIPLE_ANCHORS: 'a value can have only one anchor',
  MULTIPLE_DOCS: 'a file must contain one document',
  MULTIPLE_TAGS: 'a value can have only one tag',
  NON_STRING_KEY: 'a key must be a string',
  RESOURCE_EXHAUSTION: 'this is nested too deeply',
  TAB_AS_INDENT: 'tabs are not allowed in the indentation; use spaces',
  TAG_RESOLVE_FAILED: 'a tag or an unquoted value is unknown',
  UNEXPECTED_TOKEN: 'this token is unexpected',
};
