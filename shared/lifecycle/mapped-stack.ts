import type { SourcePositions } from './source-positions.ts';

interface CallSite extends Pick<NodeJS.CallSite, 'getScriptNameOrSourceURL' | 'getLineNumber' | 'getColumnNumber'> {
  toString(): string;
}

/**
 * The text of a stack, as V8 writes it, with the positions of sources in place of those of built files.
 *
 * @param error of any kind: `Error.captureStackTrace` takes each object
 */
export function mappedStack(error: Error, sites: readonly CallSite[], positions: SourcePositions): string {
  return [headOf(error), ...sites.map((site) => lineOf(site, positions))].join('\n    at ');
}

/** Name and message. The `toString` of Node's own errors adds their code. */
function headOf(error: Error): string {
  try {
    return error instanceof Error ? String(error) : Error.prototype.toString.call(error);
  } catch {
    return 'Error';
  }
}

function lineOf(site: CallSite, positions: SourcePositions): string {
  const text = site.toString();
  const [url, line, column] = [site.getScriptNameOrSourceURL(), site.getLineNumber(), site.getColumnNumber()];
  if (typeof url !== 'string' || line === null || column === null) return text;
  const source = positions.sourceOf({ url, line, column });
  return source === null ? text : text.replace(`${url}:${line}:${column}`, () => source);
}
