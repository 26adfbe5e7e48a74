/** Light or dark: as the system says, or as was chosen here; kept by this browser only. */
import { Store, useStore } from './store';

export type Choice = 'system' | 'light' | 'dark';
export type Theme = 'light' | 'dark';

const NAME = 'fairway-theme';
const system = matchMedia('(prefers-color-scheme: dark)');
const choice = new Store<Choice>(kept());
const theme = new Store<Theme>('light');

function kept(): Choice {
  try {
    const found = localStorage.getItem(NAME);
    return found === 'light' || found === 'dark' ? found : 'system';
  } catch {
    return 'system'; // some browsers keep nothing for anybody
  }
}

function apply(): void {
  const chosen = choice.get();
  const dark = chosen === 'dark' || (chosen === 'system' && system.matches);
  document.documentElement.dataset['theme'] = dark ? 'dark' : 'light';
  theme.set(dark ? 'dark' : 'light');
}

export function startTheme(): void {
  system.addEventListener('change', apply);
  apply();
}

export function chooseTheme(next: Choice): void {
  try {
    if (next === 'system') localStorage.removeItem(NAME);
    else localStorage.setItem(NAME, next);
  } catch {
    // It holds until the page is closed.
  }
  choice.set(next);
  apply();
}

export function useTheme(): Theme {
  return useStore(theme);
}

export function useThemeChoice(): Choice {
  return useStore(choice);
}
