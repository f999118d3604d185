import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { fileURLToPath } from 'node:url';

/** Of the programs, by URL; null: there is none. @type {Map<string, SourceMap | null>} */
const maps = new Map();

/**
 * Where the code of a program was written: its files hold many sources and packages (docs/adr/0122).
 *
 * @param {{ url: string, lineNumber: number, columnNumber?: number }} frame from 0
 * @returns {{ url: string, lineNumber: number }} the frame's own place when no source map is beside its file
 */
export function sourcePlace({ url, lineNumber, columnNumber = 0 }) {
  const map = url.includes('/dist/programs/') ? mapOf(url) : null;
  const entry = map?.findEntry(lineNumber, columnNumber);
  if (entry === undefined || !('originalSource' in entry)) return { url, lineNumber };
  return { url: new URL(entry.originalSource, url).href, lineNumber: entry.originalLine };
}

/** @param {string} url */
function mapOf(url) {
  let map = maps.get(url);
  if (map === undefined) {
    const path = `${fileURLToPath(url)}.map`;
    map = existsSync(path) ? new SourceMap(JSON.parse(readFileSync(path, 'utf8'))) : null;
    maps.set(url, map);
  }
  return map;
}
