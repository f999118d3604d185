import type { BuiltPosition, SourcePositions } from './source-positions.ts';

interface CallSite extends Pick<NodeJS.CallSite, 'getScriptNameOrSourceURL' | 'getLineNumber' | 'getColumnNumber'> {
  toString(): string;
}

/**
 * The text of a stack, as V8 writes it, with the positions of sources in place of those of built files.
 *
 * @param error of any kind: `Error.captureStackTrace` takes each object
 */
export function mappedStack(error: Error, sites: readonly CallSite[], positions: SourcePositions): string {
  const built = sites.map(builtPosition);
  const sources = positions.sourcesOf(built);
  const lines = sites.map((site, index) => lineOf(site.toString(), built[index] ?? null, sources[index] ?? null));
  return [headOf(error), ...lines].join('\n    at ');
}

/** Name and message, whatever `toString` a class has. The `toString` of Node's own errors adds their code, as Node does. */
function headOf(error: Error): string {
  try {
    return isOfNode(error) ? String(error) : Error.prototype.toString.call(error);
  } catch {
    return 'Error';
  }
}

/** By the symbol that Node marks them with: on the error or its class, by version. */
function isOfNode(error: Error): boolean {
  const marks = [error, Object.getPrototypeOf(error)].flatMap((one) => (one === null ? [] : Object.getOwnPropertySymbols(one)));
  return marks.some(({ description }) => description === 'kIsNodeError');
}

function builtPosition(site: CallSite): BuiltPosition | null {
  const [url, line, column] = [site.getScriptNameOrSourceURL(), site.getLineNumber(), site.getColumnNumber()];
  return typeof url !== 'string' || line === null || column === null ? null : { url, line, column };
}

function lineOf(text: string, built: BuiltPosition | null, source: string | null): string {
  return built === null || source === null ? text : text.replace(`${built.url}:${built.line}:${built.column}`, () => source);
}
