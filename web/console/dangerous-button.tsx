import { useRef, useState } from 'preact/hooks';
import { errorOf } from './error-of.ts';
import { Problem } from './problem.tsx';

interface DangerousButtonProps {
  label: string;
  /** What will happen, in one sentence. */
  consequence: string;
  act(): Promise<void>;
}

/** A button that asks once, and says what it does, before it does it. */
export function DangerousButton({ label, consequence, act }: DangerousButtonProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Error | null>(null);
  const confirm = async () => {
    setBusy(true);
    try {
      await act();
      setFailure(null);
      dialog.current?.close();
    } catch (error) {
      setFailure(errorOf(error));
    }
    setBusy(false);
  };
  return (
    <>
      <button type="button" class="quiet" onClick={() => dialog.current?.showModal()}>
        {label}
      </button>
      <dialog ref={dialog} aria-label={label} onClose={() => setFailure(null)}>
        <h2>{label}?</h2>
        <p>{consequence}</p>
        {failure !== null && <Problem error={failure} />}
        <div class="buttons">
          <button type="button" class="quiet" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="button" disabled={isBusy} onClick={() => void confirm()}>
            {label}
          </button>
        </div>
      </dialog>
    </>
  );
}
