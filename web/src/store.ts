/** A value that pages look at: whoever uses it is drawn again when it changes. */
import { useEffect, useState } from 'preact/hooks';

export class Store<T> {
  private readonly watchers = new Set<(value: T) => void>();

  constructor(private value: T) {}

  get(): T {
    return this.value;
  }

  set(value: T): void {
    this.value = value;
    for (const watcher of [...this.watchers]) watcher(value);
  }

  watch(watcher: (value: T) => void): () => void {
    this.watchers.add(watcher);
    return () => {
      this.watchers.delete(watcher);
    };
  }
}

export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState<T>(() => store.get());
  useEffect(() => {
    setValue(() => store.get()); // it may have changed between drawing and watching
    return store.watch((next) => setValue(() => next));
  }, [store]);
  return value;
}
