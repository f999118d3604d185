import { useState } from 'preact/hooks';
import { DangerousButton } from '../dangerous-button.tsx';
import { timeText, usd } from '../texts.ts';
import { usePagedList } from '../use-paged-list.ts';
import { VirtualList } from '../virtual-list.tsx';
import type { RouterKey } from './router-key.ts';
import type { WithApi } from './with-api.ts';

/** Keys with what they have used and may use; exposed ones alone on demand. */
export function Keys({ api }: WithApi) {
  const loading = (onlyExposed: boolean) => async (cursor: string | undefined) => {
    const offset = Number(cursor ?? 0);
    const keys = await api.keys(offset);
    const items = onlyExposed ? keys.filter(({ exposed_at }) => exposed_at !== null) : keys;
    return { items, next_cursor: keys.length === 0 ? null : String(offset + keys.length) };
  };
  const list = usePagedList<RouterKey>(({ hash }) => hash, loading(false));
  const [onlyExposed, setOnlyExposed] = useState(false);
  const reload = () => list.reset(loading(onlyExposed));
  const act = async (change: Promise<void>) => {
    await change;
    reload();
  };
  return (
    <>
      <label class="filters">
        <input
          type="checkbox"
          checked={onlyExposed}
          onChange={({ currentTarget: { checked } }) => {
            setOnlyExposed(checked);
            list.reset(loading(checked));
          }}
        />
        Exposed keys alone
      </label>
      <VirtualList
        label="Keys"
        list={list}
        keyOf={({ hash }) => hash}
        empty="There are no such keys."
        narrowRowPx={132}
        row={(key) => (
          <div class="row">
            <span class="wide" title={key.exposed_where ?? ''}>
              {key.name} <span class="faint">{key.label}</span>
            </span>
            {key.is_management_key && <span class="badge">management</span>}
            {key.exposed_at !== null && <span class="badge danger">exposed {timeText(key.exposed_at)}</span>}
            <span>
              {usd(key.usage)} used{key.limit !== null && `, ${usd(key.limit_remaining)} of ${usd(key.limit)} left`}
            </span>
            {key.requests_per_minute !== null && <span>{key.requests_per_minute}/min</span>}
            {key.disabled ? (
              <DangerousButton
                label="Enable"
                consequence={`Callers with the key “${key.name}” are served again.`}
                act={() => act(api.changeKey(key.hash, { disabled: false }))}
              />
            ) : (
              <DangerousButton
                label="Disable"
                consequence={`All callers with the key “${key.name}” are refused from now on.`}
                act={() => act(api.changeKey(key.hash, { disabled: true }))}
              />
            )}
            <DangerousButton
              label="Report as exposed"
              consequence={`The key “${key.name}” is disabled and marked as exposed, and its owner gets a mail where one is known.`}
              act={() => act(api.exposeKey(key.hash, 'reported in the console'))}
            />
          </div>
        )}
      />
    </>
  );
}
