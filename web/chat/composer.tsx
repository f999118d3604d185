import type { Ref } from 'preact';

interface ComposerProps {
  input: Ref<HTMLTextAreaElement>;
  draft: string;
  onDraft(text: string): void;
  /** @returns whether it was taken */
  onSend(text: string): boolean;
  isDisabled: boolean;
}

/** Enter sends, Shift+Enter is a new line. */
export function Composer({ input, draft, onDraft, onSend, isDisabled }: ComposerProps) {
  const send = () => {
    if (draft.trim() !== '' && !isDisabled && onSend(draft)) onDraft('');
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <label class="hidden" for="message">
        Message
      </label>
      <textarea
        id="message"
        ref={input}
        rows={Math.min(8, 1 + newLinesIn(draft))}
        value={draft}
        placeholder="Write a message"
        aria-describedby="keys"
        autofocus
        disabled={isDisabled}
        onInput={(event) => onDraft(event.currentTarget.value)}
        onKeyDown={(event) => {
          // Of an input method, Enter ends the composition.
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          send();
        }}
      />
      <button type="submit" disabled={isDisabled || draft.trim() === ''}>
        Send
      </button>
      <p id="keys" class="hidden">
        Enter sends, Shift and Enter begin a new line.
      </p>
    </form>
  );
}

function newLinesIn(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at >= 0 && count < 8; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
}
