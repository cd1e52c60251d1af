// theme.ts - dark or light: as the system has it, or as was chosen
import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const KEY = "gpu-scheduler-theme";

export const theme = signal<Theme>((localStorage.getItem(KEY) as Theme | null) ?? "system");

effect(() => {
  const root = document.documentElement;
  if (theme.value === "system") delete root.dataset.theme;
  else root.dataset.theme = theme.value;
  localStorage.setItem(KEY, theme.value);
});

export function nextTheme(): void {
  theme.value = theme.value === "system" ? "light" : theme.value === "light" ? "dark" : "system";
}
