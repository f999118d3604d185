import type { Unsent } from './outbox.ts';

interface UnsentMessageProps {
  message: Unsent;
  onEdit(key: string, text: string): void;
  onDiscard(key: string): void;
}

export function UnsentMessage({ message: { key, text, state, problem }, onEdit, onDiscard }: UnsentMessageProps) {
  return (
    <li class="message customer unsent">
      <div class="plain">{text}</div>
      {state === 'refused' ? (
        <p class="problem" role="alert">
          Not sent: {problem}{' '}
          <button type="button" class="quiet" onClick={() => onEdit(key, text)}>
            Edit
          </button>{' '}
          <button type="button" class="quiet" onClick={() => onDiscard(key)}>
            Discard
          </button>
        </p>
      ) : (
        <p class="by">{state === 'sending' ? 'Sending …' : 'Sent'}</p>
      )}
    </li>
  );
}
