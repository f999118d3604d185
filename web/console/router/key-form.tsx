import { useState } from 'preact/hooks';
import { errorOf } from '../error-of.ts';
import { Problem } from '../problem.tsx';
import { RouterApi } from './router-api.ts';

/** Takes a key that may list keys. */
export function KeyForm({ onKey }: { onKey(api: RouterApi): void }) {
  const [failure, setFailure] = useState<Error | null>(null);
  const [isBusy, setBusy] = useState(false);
  const open = async (event: SubmitEvent) => {
    event.preventDefault();
    const api = new RouterApi(String(new FormData(event.currentTarget as HTMLFormElement).get('key')).trim());
    setBusy(true);
    try {
      await api.keys(0);
      onKey(api);
    } catch (error) {
      setFailure(errorOf(error));
      setBusy(false);
    }
  };
  return (
    <form class="card narrow" onSubmit={(event) => void open(event)}>
      <h2>Management key</h2>
      <p class="faint" id="key-note">
        It stays in the memory of this page and is stored nowhere: a reload forgets it. The data folder of npm start has one in keys.json.
      </p>
      <input name="key" type="password" autocomplete="off" required aria-label="Management key" aria-describedby="key-note" />
      {failure !== null && <Problem error={failure} />}
      <button type="submit" disabled={isBusy}>
        Open
      </button>
    </form>
  );
}
