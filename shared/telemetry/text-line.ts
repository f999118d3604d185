/** Wider than the spaces within a message. */
const GAP = '  ';
const LEVEL_WIDTH = 5;
const MAX_VALUE_CHARS = 500;
/** Deeper stack lines are mostly the framework's. */
const MAX_FRAMES = 12;
const BARE = /^[\w.:/@+~%-]+$/;
/** Control and format characters, line separators, lone surrogates: terminals obey them, or they hide or reorder text. */
const UNSHOWN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/**
 * Formats a JSON log line for a terminal: time of day (UTC), level, service, message, fields as `name=value`; an error follows on lines of its own.
 * Control characters are escaped: no value can forge a line or command the terminal.
 * @param line with secrets masked already
 */
export function textLine(line: string): string {
  const entry = objectIn(line);
  if (entry === null) return `${escaped(line.trimEnd())}\n`;
  const { level, time, service, pid: _, msg, err, ...fields } = entry;
  const head = [textOf(time).slice(11, 23), textOf(level).toUpperCase().padEnd(LEVEL_WIDTH), textOf(service), textOf(msg)];
  const isError = isObject(err);
  const pairs = pairsOf(isError || err === undefined ? fields : { ...fields, err });
  return `${[head.slice(0, 3).map(escaped).join(' '), escaped(head[3] ?? ''), pairs].filter((part) => part !== '').join(GAP)}\n${isError ? errorLines(err) : ''}`;
}

function errorLines(error: Record<string, unknown>): string {
  const lines = [`    ${titleOf(error)}`, ...framesOf(error.stack).map((frame) => `      ${frame}`)];
  for (const cause of Array.isArray(error.causes) ? error.causes : []) lines.push(`    caused by ${isObject(cause) ? titleOf(cause) : valueText(cause)}`);
  return lines.map((line) => `${escaped(line)}\n`).join('');
}

function titleOf({ name, code, message, details }: Record<string, unknown>): string {
  const title = `${textOf(name)}${code === undefined ? '' : ` ${textOf(code)}`}: ${textOf(message)}`;
  return isObject(details) && Object.keys(details).length > 0 ? `${title}${GAP}${pairsOf(details)}` : title;
}

function framesOf(stack: unknown): string[] {
  const frames = textOf(stack).split('\n');
  return frames
    .map((frame) => frame.trim())
    .filter((frame) => frame.startsWith('at '))
    .slice(0, MAX_FRAMES);
}

function pairsOf(fields: Record<string, unknown>): string {
  return Object.entries(fields)
    .map(([name, value]) => `${escaped(name)}=${valueText(value)}`)
    .join(' ');
}

function valueText(value: unknown): string {
  const text = typeof value === 'string' && BARE.test(value) ? value : JSON.stringify(value);
  return escaped(text.length > MAX_VALUE_CHARS ? `${text.slice(0, MAX_VALUE_CHARS)}…` : text);
}

function escaped(text: string): string {
  return text.replace(UNSHOWN, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, '0')}`;
  });
}

function objectIn(line: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
}
