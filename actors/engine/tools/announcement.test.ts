import { describe, expect, it } from 'vitest';
import type { ListedTool } from '#bus/messages/tool.ts';
import { announcementOf, isAnnouncement } from './announcement.ts';

const listed = (name: string, title: string | null): ListedTool => ({ name, title, description: null, inputSchema: { type: 'object' }, repeatable: true });
const lists = { shop: 'a', crm: 'b' };
const toolsOf = (hash: string) => (hash === 'a' ? [listed('order', 'Bestellung'), listed('get_refund-state', null), listed('odd', ' \u202e\n')] : null);
const text = (...toolIds: string[]) => announcementOf(toolIds, lists, toolsOf);

describe('rule 110: an announcement of tools', () => {
  it('is one line of their titles, in the order of the calls, each once', () => {
    expect(text('shop:order', 'shop:get_refund-state', 'shop:order')).toBe('Bestellung · get refund state');
  });

  it('names a tool without a usable title, or of a list that is not stored, by its name', () => {
    expect(text('shop:odd', 'crm:find.customer', 'toString:x')).toBe('odd · find customer · x');
    expect(text('shop:__')).toBe('__');
  });

  it('is bounded, and never ends in half a character', () => {
    const long = announcementOf(['shop:order'], lists, () => [listed('order', '😀'.repeat(300))]);
    expect(long.length).toBeLessThanOrEqual(200);
    expect(long).toMatch(/^(😀)+…$/u);
  });

  it('is known by its mark', () => {
    expect(isAnnouncement({ kind: 'preamble', metadata: { announces: 'tools' } })).toBe(true);
    expect(isAnnouncement({ kind: 'preamble', metadata: {} })).toBe(false);
    expect(isAnnouncement({ kind: 'assistant_message', metadata: { announces: 'tools' } })).toBe(false);
  });
});
