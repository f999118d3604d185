import type { ChatRequest } from '../contracts/router/chat-request.ts';
import { isEnabled } from '../contracts/router/plugins.ts';
import { messagesBeyondText } from './deferred-messages.ts';
import { pdfSourceOf } from './pdf-source.ts';

/** What reads PDFs without an engine of the router's file: this router, or the endpoint. */
export const BUILT_IN_PARSERS: ReadonlySet<string> = new Set(['pdf-text', 'native']);

/** The reading of files that a request asks for, or that its PDFs have without being asked for. */
export interface AskedParsing {
  /** Place of the plugin in the request; null: it does not name the plugin. */
  at: number | null;
  /** `pdf-text`, `native`, or the name of an OCR engine; null: not stated. */
  engine: string | null;
}

const UNNAMED: AskedParsing = { at: null, engine: null };

/** Null: none. A request that names the plugin alone to switch it off has none. */
export function askedParsing(request: Pick<ChatRequest, 'plugins' | 'messages'>): AskedParsing | null {
  let isNamed = false;
  for (const [at, plugin] of (request.plugins ?? []).entries()) {
    if (plugin.id !== 'file-parser') continue;
    isNamed = true;
    if (!isEnabled(plugin)) continue;
    const { pdf } = plugin as { pdf?: { engine?: string } };
    return { at, engine: pdf?.engine ?? null };
  }
  return !isNamed && hasPdf(request) ? UNNAMED : null;
}

function hasPdf(request: Pick<ChatRequest, 'messages'>): boolean {
  return messagesBeyondText(request).some(({ content }) => Array.isArray(content) && content.some((item) => pdfSourceOf(item) !== null));
}
