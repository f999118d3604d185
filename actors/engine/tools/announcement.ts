import { cleanText } from '#shared/clean-text.ts';
import { ownValue } from '#shared/own-value.ts';
import { serverOf, type ToolsOf } from './turn-tools.ts';

const MAX_CHARS = 200;

/** In the metadata of an event that announces tools. Models don't see such events. */
export const announcementMark = { announces: 'tools' } as const;

export function isAnnouncement({ kind, metadata }: { kind: string; metadata: Record<string, unknown> }): boolean {
  return kind === 'preamble' && metadata.announces === announcementMark.announces;
}

/**
 * What a batch of tool calls says to the customer: the titles of its tools, in order, each once. No words of ours, whose language could be another than the
 * conversation's; no arguments and no results.
 * @param toolIds of the calls
 * @param lists hashes by server
 * @returns one line
 */
export function announcementOf(toolIds: readonly string[], lists: Readonly<Record<string, string>>, toolsOf: ToolsOf): string {
  const titles = new Set(toolIds.map((toolId) => titleOf(toolId, lists, toolsOf)));
  const text = [...titles].join(' · ');
  return text.length > MAX_CHARS ? `${cleanText(text.slice(0, MAX_CHARS - 1))}…` : text;
}

/** Its own title, else its name as words. */
function titleOf(toolId: string, lists: Readonly<Record<string, string>>, toolsOf: ToolsOf): string {
  const server = serverOf(toolId);
  const name = toolId.slice(server.length + 1);
  const hash = ownValue(lists, server);
  const title = hash === undefined ? null : toolsOf(hash)?.find((tool) => tool.name === name)?.title;
  const words = inOneLine(title ?? '') || inOneLine(name.replace(/[_.-]+/g, ' '));
  return words === '' ? name : words;
}

function inOneLine(text: string): string {
  return cleanText(text).replace(/\s+/g, ' ').trim();
}
