import type { ChatRequest } from './chat-request.ts';
import { isEnabled } from './plugins.ts';

/** What reads PDFs without an engine of the router's file: this router, or the endpoint. */
export const BUILT_IN_PARSERS: ReadonlySet<string> = new Set(['pdf-text', 'native']);

/** The reading of files that a request asks for. */
export interface AskedParsing {
  /** Place of the plugin in the request. */
  at: number;
  /** `pdf-text`, `native`, or the name of an OCR engine; null: not stated. */
  engine: string | null;
}

/** Null: none. */
export function askedParsing({ plugins = [] }: Pick<ChatRequest, 'plugins'>): AskedParsing | null {
  for (const [at, plugin] of plugins.entries()) {
    if (plugin.id !== 'file-parser' || !isEnabled(plugin)) continue;
    const { pdf } = plugin as { pdf?: { engine?: string } };
    return { at, engine: pdf?.engine ?? null };
  }
  return null;
}
