import { describe, expect, it } from 'vitest';
import type { ConversationEvent, EventContent, EventSource } from '#shared/contracts/agent/conversation-event.ts';
import { composeReply } from './compose-reply.ts';

const input = { agent: { id: 'acme', name: 'Acme Support' }, systemPrompt: 'You are {{agent.name}}.', language: 'match_user', history: [], nowMs: 0 };

describe('composing a reply', () => {
  it('leaves an unknown placeholder unchanged', () => {
    const [system] = promptOf({ ...input, systemPrompt: '{{agent.secret}} {{constructor}} {{ customer.name }}' });

    expect(system?.content).toContain('{{agent.secret}} {{constructor}} {{ customer.name }}');
  });

  it('never fills a placeholder that a customer wrote', () => {
    const [, user] = promptOf({ ...input, history: [event({ kind: 'user_message', text: 'who is {{agent.id}}?' })] });

    expect(user).toEqual({ role: 'user', content: 'who is {{agent.id}}?' });
  });

  it('fills in the agent and the instant of the call', () => {
    const [system] = promptOf({ ...input, systemPrompt: '{{agent.name}} ({{ agent.id }}) at {{now}}' });

    expect(system?.content).toContain('Acme Support (acme) at 1970-01-01T00:00:00.000Z');
  });

  it('passes a language literally, and asks to match the customer otherwise', () => {
    expect(promptOf({ ...input, language: 'Plain German, please' })[0]?.content).toContain('Plain German, please');
    expect(promptOf(input)[0]?.content).toContain("the language of the customer's last message");
  });

  it('retains the order of the log and each author’s role, and leaves statuses out', () => {
    const history = [
      event({ kind: 'user_message', text: 'one' }),
      event({ kind: 'status', status: 'typing', stage: null, error_detail: null }),
      event({ kind: 'assistant_message', text: 'two' }),
      event({ kind: 'user_message', text: 'three' }, 'system'),
      event({ kind: 'assistant_message', text: 'four' }, 'human_agent'),
    ];

    expect(promptOf({ ...input, history }).slice(1)).toEqual([
      { role: 'user', content: 'one' },
      { role: 'assistant', content: 'two' },
      { role: 'system', content: 'three' },
      { role: 'assistant', content: 'four' },
    ]);
  });
});

function promptOf(given: Parameters<typeof composeReply.render>[0]) {
  return composeReply.render(given).messages;
}

function event(content: EventContent, source: EventSource = 'customer'): ConversationEvent {
  return { id: 'evt_1', offset: 0, created_at: '2026-01-01T00:00:00.000Z', source, trace_id: 'f'.repeat(32), metadata: {}, ...content };
}
