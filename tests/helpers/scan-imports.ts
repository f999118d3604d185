/** One import or export-from of a file. */
interface ImportSite {
  /** As written; null when it is computed. */
  specifier: string | null;
  line: number;
}

export interface ScannedFile {
  imports: ImportSite[];
  /** The lines of re-exports: `export … from`, or the export of an imported name. */
  reExportLines: number[];
}

interface Token {
  kind: 'word' | 'string' | 'template' | 'punctuation';
  text: string;
  line: number;
}

/**
 * Reads every import, export-from, dynamic import and type import of a TypeScript file. It knows comments, strings, templates and regular
 * expressions, and no further grammar: text between tags of JSX must not look like one of them. @throws on unknown text, since a guess would miss imports.
 */
export function scanImports(source: string): ScannedFile {
  const tokens = tokenize(source);
  const imports: ImportSite[] = [];
  const reExportLines: number[] = [];
  const importedNames = new Set<string>();
  tokens.forEach((token, at) => {
    if (token.kind !== 'word' || isMark(tokens[at - 1], '.')) return;
    if (token.text === 'import') {
      const found = readImport(tokens, at);
      if (found !== null) imports.push(found.site);
      for (const name of found?.names ?? []) importedNames.add(name);
    } else if (token.text === 'require' && isMark(tokens[at + 1], '(') && tokens[at + 2]?.kind === 'string') {
      imports.push({ specifier: tokens[at + 2]?.text ?? null, line: token.line });
    } else if (token.text === 'export') {
      const found = readExport(tokens, at);
      if (found.site !== null) imports.push(found.site);
      if (found.site !== null || found.names.some((name) => importedNames.has(name))) reExportLines.push(token.line);
    }
  });
  return { imports, reExportLines };
}

/** @returns null when the word is no import at all: `import.meta`, or a property of that name */
function readImport(tokens: Token[], at: number): { site: ImportSite; names: string[] } | null {
  const { line } = tokens[at] ?? { line: 0 };
  const next = tokens[at + 1];
  if (next === undefined || isMark(next, '.') || isMark(next, ':')) return null;
  if (next.kind === 'string') return { site: { specifier: next.text, line }, names: [] };
  if (isMark(next, '(')) {
    const argument = tokens[at + 2];
    return { site: { specifier: argument?.kind === 'string' ? argument.text : null, line }, names: [] };
  }
  const clause = readClause(tokens, at + 1);
  if (clause.specifier === null) throw new Error(`line ${line}: an import without a 'from' that can be read`);
  return { site: { specifier: clause.specifier, line }, names: localNames(clause.words, 'last') };
}

/** `site` is null for an export of the file's own things; `names` are the local names of an export list. */
function readExport(tokens: Token[], at: number): { site: ImportSite | null; names: string[] } {
  const { line } = tokens[at] ?? { line: 0 };
  const start = tokens[at + 1]?.text === 'type' ? at + 2 : at + 1;
  if (!isMark(tokens[start], '{') && !isMark(tokens[start], '*')) return { site: null, names: [] };
  const { specifier, words } = readClause(tokens, start);
  return specifier === null ? { site: null, names: localNames(words, 'first') } : { site: { specifier, line }, names: [] };
}

/** The words between `import` or `export` and its `from 'specifier'`; the specifier is null when the clause ends without one. */
function readClause(tokens: Token[], start: number): { words: Token[]; specifier: string | null } {
  const words: Token[] = [];
  let closed = false;
  for (let at = start; at < tokens.length; at += 1) {
    const token = tokens[at];
    if (token === undefined) break;
    const next = tokens[at + 1];
    if (token.kind === 'word' && token.text === 'from' && next?.kind === 'string') return { words, specifier: next.text };
    // What follows a list and is not `from` is the next statement.
    if (closed || (token.kind === 'punctuation' && !'{},*'.includes(token.text))) break;
    closed = isMark(token, '}');
    words.push(token);
  }
  return { words, specifier: null };
}

/** The local names of a clause: of `a as b` an import binds the last, an export reads the first. */
function localNames(clause: Token[], which: 'first' | 'last'): string[] {
  const parts: string[][] = [[]];
  for (const { text } of clause) {
    if (text === ',') parts.push([]);
    else if (text !== '{' && text !== '}') parts.at(-1)?.push(text);
  }
  return parts.flatMap((part) => {
    const words = part.length > 1 && part[0] === 'type' ? part.slice(1) : part;
    return (which === 'first' ? words[0] : words.at(-1)) ?? [];
  });
}

/** A string may hold the same text as a mark: `from '.'`. */
function isMark(token: Token | undefined, text: string): boolean {
  return token?.kind === 'punctuation' && token.text === text;
}

/** After these a slash begins a regular expression; after any other word, a number or a closing bracket it divides. */
const WORDS_BEFORE_REGEX = new Set(['return', 'typeof', 'instanceof', 'in', 'of', 'new', 'delete', 'void', 'throw', 'case', 'do', 'else', 'yield', 'await']);

function tokenize(source: string): Token[] {
  const tokens: Token[] = [];
  /** How many braces stand open, and at which count each unfinished template goes on. */
  let braces = 0;
  const templates: number[] = [];
  let at = 0;
  let line = 1;
  const take = (pattern: RegExp, what: string): string => {
    pattern.lastIndex = at;
    const text = pattern.exec(source)?.[0];
    if (text === undefined) throw new Error(`line ${line}: ${what} that does not end`);
    at += text.length;
    line += text.split('\n').length - 1;
    return text;
  };
  const takeTemplate = () => {
    const startLine = line;
    const text = take(/(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{)/y, 'a template');
    if (text.endsWith('`')) return { text: text.slice(0, -1), isWhole: true, line: startLine };
    templates.push(braces);
    braces += 1;
    return { text: text.slice(0, -2), isWhole: false, line: startLine };
  };

  while (at < source.length) {
    const rest = source[at] ?? '';
    const startLine = line;
    if (/\s/.test(rest)) take(/\s+/y, 'space');
    else if (source.startsWith('//', at)) take(/\/\/.*/y, 'a comment');
    else if (source.startsWith('/*', at)) take(/\/\*[\s\S]*?\*\//y, 'a comment');
    else if (rest === '"' || rest === "'") {
      const text = take(rest === '"' ? /"(?:[^"\\\n]|\\[\s\S])*"/y : /'(?:[^'\\\n]|\\[\s\S])*'/y, 'a string');
      tokens.push({ kind: 'string', text: text.slice(1, -1), line: startLine });
    } else if (rest === '`') {
      at += 1;
      const { text, isWhole } = takeTemplate();
      tokens.push({ kind: isWhole ? 'string' : 'template', text, line: startLine });
    } else if (rest === '}' && templates.at(-1) === braces - 1) {
      at += 1;
      braces -= 1;
      templates.pop();
      const { text } = takeTemplate();
      tokens.push({ kind: 'template', text, line: startLine });
    } else if (/[\p{ID_Start}\p{Number}_$#@]/u.test(rest)) {
      tokens.push({ kind: 'word', text: take(/[\p{ID_Continue}$#@]+/uy, 'a word'), line: startLine });
    } else if (rest === '/' && beginsRegex(tokens.at(-1))) {
      take(/\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y, 'a regular expression');
      tokens.push({ kind: 'template', text: '', line: startLine });
    } else {
      if (rest === '{') braces += 1;
      if (rest === '}') braces -= 1;
      at += 1;
      tokens.push({ kind: 'punctuation', text: rest, line: startLine });
    }
  }
  if (templates.length > 0) throw new Error(`line ${line}: a template that does not end`);
  return tokens;
}

function beginsRegex(before: Token | undefined): boolean {
  if (before === undefined) return true;
  if (before.kind === 'word') return WORDS_BEFORE_REGEX.has(before.text);
  // Behind `<` it closes a tag of JSX.
  return before.kind === 'punctuation' && !')]}<'.includes(before.text);
}
