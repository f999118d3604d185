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

/**
 * Far beyond any document written by hand. Parsing this much takes one to three seconds of CPU, and up to some ten where nearly each
 * character is an error, at the start alone: files are the operator's, and nothing reads one on request.
 */
const MAX_FILE_BYTES = 1_048_576;
/** Deeper than anything sensible, and shallow enough for functions that call themselves. */
const MAX_DEPTH = 64;
/** How often YAML aliases may be resolved: a few lines of them can stand for gigabytes. */
const MAX_ALIASES = 100;
/** Anchors and aliases in one file: each alias is looked up among all of them. */
const MAX_ANCHORS = 1_000;
/** Values in one document, those that aliases stand for each time: twice what a file of the largest size can hold without an alias. */
const MAX_VALUES = 1_048_576;
/** After the first ones, errors of syntax are consequences of each other: the others are counted. */
const MAX_SYNTAX_ERRORS = 5;

/** Either a value, plain JSON, or what is wrong: at least one line that does not name the file. */
export type FileRead = { value: unknown; problems: [] } | { value: null; problems: [string, ...string[]] };

/**
 * Reads one YAML or JSON file: JSON is a part of YAML 1.2, so one parser reads both, and refuses a key that stands twice in either.
 * Problems name the line and never quote the text: a secret may stand where it should not.
 */
export async function readDocumentFile(path: string): Promise<FileRead> {
  const text = await readText(path);
  if (typeof text !== 'string') return refused(text.problem);
  const lines = new LineCounter();
  const document = parseDocument(text, { ...OPTIONS, lineCounter: lines });
  const walk = walkNodes(document);
  // A tag that is not known is only a warning to the parser, and its value would be taken for something else.
  const [first, ...more] = listed([...document.errors.map(faultAt), ...document.warnings.map(faultAt), ...walk.repeatedKeys], lines);
  if (first !== undefined) return refused(first, ...more);
  if (walk.anchors > MAX_ANCHORS) return refused(`the document holds more than ${MAX_ANCHORS} anchors and aliases`);
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch {
    return refused(`an alias names no anchor before it, or aliases stand for more than ${MAX_ALIASES} values`);
  }
  const fault = faultOf(value, { valuesLeft: MAX_VALUES });
  return fault === null ? { value, problems: [] } : refused(fault);
}

/** Their values have no form in JSON, and an ordered map is read with a search that is quadratic. `%YAML 1.1` brings them in too. */
const TAGS_LEFT_OUT = /:(?:omap|pairs|set|binary|timestamp)$/;

/** The parser compares each key with all before it in its mapping, so keys that stand twice are found here. */
const OPTIONS: ParseOptions & DocumentOptions & SchemaOptions = {
  prettyErrors: false,
  stringKeys: true,
  uniqueKeys: false,
  resolveKnownTags: false,
  customTags: (tags) => tags.filter((tag) => typeof tag === 'string' || !TAGS_LEFT_OUT.test(tag.tag)),
  logLevel: 'error',
};

interface SyntaxFault {
  /** Characters before it. */
  at: number;
  sentence: string;
}

function faultAt({ pos, code }: { pos: [number, number]; code: ErrorCode }): SyntaxFault {
  return { at: pos[0], sentence: SENTENCES[code] };
}

/** The first faults in the order of the file, with the count of the rest. */
function listed(faults: readonly SyntaxFault[], lines: LineCounter): string[] {
  const sorted = [...faults].sort((left, right) => left.at - right.at);
  const shown = sorted.slice(0, MAX_SYNTAX_ERRORS).map(({ at, sentence }) => {
    const { line, col } = lines.linePos(at);
    return `line ${line}, column ${col}: ${sentence}`;
  });
  const rest = sorted.length - shown.length;
  return rest === 0 ? shown : [...shown, `… and ${rest} more`];
}

/** Looks at each node once, without recursion and without following aliases. */
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
    if (seen.has(key.value)) repeats.push({ at: key.range?.[0] ?? 0, sentence: SENTENCES.DUPLICATE_KEY });
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
    // Opening a pipe would wait for somebody to write into it.
    if (!found.isFile()) return { problem: 'this is not a file' };
    if (found.size > MAX_FILE_BYTES) return { problem: `the file is larger than ${MAX_FILE_BYTES / 1_048_576} MiB` };
    bytes = await readFile(path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    return { problem: error.code === 'ENOENT' ? 'the file does not exist' : `the file can not be read (${String(error.code)})` };
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return { problem: 'the file is not UTF-8 text' };
  }
}

/** YAML knows more than JSON: infinity, bytes, dates, sets, and values that contain themselves. */
function faultOf(value: unknown, walk: { valuesLeft: number }, depth = 0): string | null {
  walk.valuesLeft -= 1;
  if (walk.valuesLeft < 0) return `aliases stand for more than ${MAX_VALUES} values`;
  if (depth > MAX_DEPTH) return `the document is nested deeper than ${MAX_DEPTH} levels`;
  if (value === null || typeof value === 'string' || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))) return null;
  const isList = Array.isArray(value);
  if (!isList && (typeof value !== 'object' || Object.getPrototypeOf(value) !== Object.prototype)) {
    return 'the document holds a value that JSON has no form for, such as .inf, .nan, !!binary or !!set';
  }
  for (const inner of isList ? value : Object.values(value)) {
    const fault = faultOf(inner, walk, depth + 1);
    if (fault !== null) return fault;
  }
  return null;
}

/** The parser's own messages quote the text. */
const SENTENCES: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: 'an alias can have no anchor or tag',
  BAD_ALIAS: 'an alias or anchor has no proper name',
  BAD_COLLECTION_TYPE: 'a tag does not fit its collection',
  BAD_DIRECTIVE: 'a % directive is not valid',
  BAD_DQ_ESCAPE: 'an escape in a quoted string is not valid',
  BAD_INDENT: 'the indentation does not fit, or a bracket is not closed',
  BAD_PROP_ORDER: 'an anchor or tag stands in the wrong place',
  BAD_SCALAR_START: 'a string can not begin with this character; put it in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a mapping can not begin here; a string with a colon needs quotes',
  BLOCK_IN_FLOW: 'a block can not stand inside brackets',
  DUPLICATE_KEY: 'this key stands here twice',
  IMPOSSIBLE: 'this can not be read',
  KEY_OVER_1024_CHARS: 'a key is longer than 1024 characters',
  MISSING_CHAR: 'a quote, bracket, comma, colon or space is missing',
  MULTILINE_IMPLICIT_KEY: 'a key must stand on one line',
  MULTIPLE_ANCHORS: 'a value can have only one anchor',
  MULTIPLE_DOCS: 'a file must hold one document',
  MULTIPLE_TAGS: 'a value can have only one tag',
  NON_STRING_KEY: 'a key must be a string',
  RESOURCE_EXHAUSTION: 'this is nested too deeply',
  TAB_AS_INDENT: 'a tab can not indent; use spaces',
  TAG_RESOLVE_FAILED: 'a tag or an unquoted value is not known',
  UNEXPECTED_TOKEN: 'this is not expected here',
};
