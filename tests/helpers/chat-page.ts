import type { Page } from 'playwright-core';
import type { AgentEvent } from '../../client/api.ts';

/** An event as the chat page shows it. `author`: `customer`, `agent`, `tools`, `error`, or `note`. */
export interface ShownEntry {
  offset: number;
  author: string;
  text: string;
}

export const messages = (page: Page, author?: string) => page.locator(author === undefined ? '.message[data-offset]' : `.message.${author}[data-offset]`);

export const sessionOf = (page: Page) => new URL(page.url()).searchParams.get('session') ?? '';

export async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message', { exact: true }).fill(text);
  await page.getByLabel('Message', { exact: true }).press('Enter');
}

/** Until the agent is done with what is in the log. */
export async function idle(page: Page): Promise<void> {
  await page.locator('.message.agent[data-offset]').last().waitFor();
  await page.locator('[role=status][data-status=ready]').waitFor();
}

/** The entries of the page, in order. */
export function shownLog(page: Page): Promise<ShownEntry[]> {
  return page.locator('.log [data-offset]').evaluateAll((entries) =>
    entries.map((entry) => ({
      offset: Number(entry.getAttribute('data-offset')),
      author: ['customer', 'agent', 'tools', 'error'].find((name) => entry.classList.contains(name)) ?? 'note',
      text: (entry.querySelector('.text, .note code')?.textContent ?? '').replaceAll(/\s+/g, ' ').trim(),
    })),
  );
}

/** The same of an event of the log; none: the page has no entry for it. Its text must have no Markdown. */
export function shownAs(event: AgentEvent): ShownEntry[] {
  const { offset } = event;
  switch (event.kind) {
    case 'user_message':
      return [{ offset, author: 'customer', text: plain(event.text) }];
    case 'assistant_message':
    case 'preamble':
      return [{ offset, author: 'agent', text: plain(event.text) }];
    case 'tool':
      return [{ offset, author: 'tools', text: '' }];
    case 'status':
      if (event.status === 'error') return [{ offset, author: 'error', text: plain(event.error_detail ?? '') }];
      return event.status === 'cancelled' ? [{ offset, author: 'note', text: '' }] : [];
    default:
      return [];
  }
}

function plain(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}
